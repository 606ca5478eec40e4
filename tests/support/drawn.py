"""What charts draw, by its attributes only."""

from types import SimpleNamespace


def row(string: str, share: float, detected: bool, half: float = 0.01) -> SimpleNamespace:
    """A raw estimate of a share; the interval of what was not detected begins at 0."""
    low = max(share - half, 0) if detected else 0.0
    high = max(share + half, 0)
    shown = min(max(share, low), high)
    return SimpleNamespace(
        string=string,
        estimate=shown * 1e6,
        raw_estimate=share * 1e6,
        proportion=shown,
        prop_low_95=low,
        prop_high_95=high,
        interval=(low * 1e6, high * 1e6),
        adjusted_p_value=1e-9 if detected else 0.7,
        detected=detected,
        presence_only=detected and low <= 0,
    )
