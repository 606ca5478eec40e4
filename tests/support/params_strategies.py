"""Hypothesis strategies for every valid Params."""

from hypothesis import strategies as st

from rappor.params import MAX_H, MAX_K, MAX_M, Params


@st.composite
def valid_params(draw: st.DrawFn) -> Params:
    """Any six numbers that DESIGN's Formats allow, subnormal probabilities included."""
    k = draw(st.integers(1, MAX_K))
    h = draw(st.integers(1, min(MAX_H, k)))
    m = draw(st.integers(1, MAX_M))
    probability = st.floats(0, 1)
    p, q = sorted(draw(st.lists(probability, min_size=2, max_size=2, unique=True)))
    reveals_bits = p == 0 or q == 1
    f = draw(st.floats(0, 1, exclude_min=reveals_bits, exclude_max=True))
    return Params(k, h, m, f, p, q)
