"""What charts draw, by its attributes only."""

from types import SimpleNamespace


def row(string: str, share: float, detected: bool, half: float = 0.01) -> SimpleNamespace:
    """An estimate of a share with its interval, which does not begin below 0."""
    low, high = max(share - half, 0), max(share + half, 0)
    return SimpleNamespace(
        string=string,
        estimate=share * 1e6,
        proportion=share,
        prop_low_95=low,
        prop_high_95=high,
        interval=(low * 1e6, high * 1e6),
        adjusted_p_value=1e-9 if detected else 0.7,
        detected=detected,
    )
