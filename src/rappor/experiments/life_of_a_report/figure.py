"""The drawing of Figure 1: a value's bits on their way through B and B' into the report S."""

from __future__ import annotations

from rappor.charts.theme import Spec, colours, whole_chart
from rappor.experiments.experiment import Figure
from rappor.experiments.shared_charts import legend, named
from rappor.mechanism import Trace
from rappor.params import Params

_TOP, _ROW, _GAP = 58, 34, 44  # pixels: above the first row, a row of bits, between two rows
_WIDTH = 700


def draw(value: str, params: Params, shown: Trace) -> Figure:
    """Three rows of bits, with the value's own bits followed from row to row."""
    colour = colours()
    signal, permanent, report = shown.signal, shown.permanent, shown.report.bits
    rows = ((signal, "B", "hashed"), (permanent, "B'", "permanent"), (report, "S", "sent"))
    height = _TOP + 3 * _ROW + 2 * _GAP
    x: Spec = {"field": "x", "type": "quantitative"}
    x["scale"] = {"domain": [0, params.k], "nice": False}
    x["axis"] = {"title": "Bit", "values": [0, 64, 128, 192, 255], "grid": False, "domain": False}
    y: Spec = {"field": "y", "type": "quantitative", "axis": None}
    y["scale"] = {"domain": [height, 0], "nice": False}
    box = {"x": x, "x2": {"field": "x2"}, "y": y, "y2": {"field": "y2"}}
    states = {
        "0": colour["line"],
        "1": colour["c1"],
        "a bit of the value, 1": colour["c2"],
        "a bit of the value, 0": colour["text"],
    }
    key = legend(symbolType="square", symbolStrokeWidth=0)
    parts: Spec = {
        "width": _WIDTH,
        "height": height,
        "layer": [
            {
                "data": {"values": _links(params, shown)},
                "mark": {"type": "rule", "color": colour["c2"], "strokeWidth": 1.5},
                "encoding": box,
            },
            {
                "data": {"values": _bits(params, shown)},
                "mark": {"type": "rect"},
                "encoding": box | {"color": named("state", states, key)},
            },
            _text(
                [{"y": 10, "lines": f"v = “{value}”", "x": params.k / 2}],
                {"align": "center", "fontSize": 14, "fontWeight": 700},
                {"x": x, "y": y},
            ),
            _text(
                [
                    {"y": _middle(row), "lines": [f"{name}: {about}", f"{bits.bit_count()} ones"]}
                    for row, (bits, name, about) in enumerate(rows)
                ],
                {"align": "right", "fontSize": 13, "lineHeight": 17, "dy": -8},
                {"x": {"value": -12}, "y": y},
            ),
        ],
    }
    words = f"k = {params.k} bits, h = {params.h} hash functions, "
    words += f"f = {params.f:g}, p = {params.p:g}, q = {params.q:g}"
    spec = whole_chart(parts, f"The life of a report of “{value}”", [words], "light")
    caption = (
        f"One client’s value “{value}” is hashed to {params.h} of {params.k} bits (B); "
        f"{(signal & permanent).bit_count()} of them are 1 in the permanent response B', which the "
        f"client keeps, and {(signal & permanent & report).bit_count()} of those are 1 in the "
        f"report S, which has {report.bit_count()} ones. The collector cannot see which bits are "
        "the value’s."
    )
    return Figure("life-of-a-report", "The life of one report", caption, spec)


def _text(values: list[Spec], look: Spec, place: Spec) -> Spec:
    return {
        "data": {"values": values},
        "mark": {"type": "text", "baseline": "middle", "color": colours()["text"], **look},
        "encoding": {**place, "text": {"field": "lines", "type": "nominal"}},
    }


def _top(row: int) -> int:
    return _TOP + row * (_ROW + _GAP)


def _middle(row: int) -> float:
    return _top(row) + _ROW / 2


def _bits(params: Params, shown: Trace) -> list[Spec]:
    cells = []
    for row, bits in enumerate((shown.signal, shown.permanent, shown.report.bits)):
        for bit in range(params.k):
            mine, is_one = shown.signal >> bit & 1, bits >> bit & 1
            # The value's own bits are drawn a little wider and taller, to be found at all.
            edge, more = (0.3, 4) if mine else (0.0, 0)
            cells.append(
                {
                    "x": bit - edge,
                    "x2": bit + 0.82 + edge,
                    "y": _top(row) - more,
                    "y2": _top(row) + _ROW + more,
                    "state": f"a bit of the value, {is_one}" if mine else str(is_one),
                }
            )
    return sorted(cells, key=lambda cell: len(cell["state"]))  # the value's own on top


def _links(params: Params, shown: Trace) -> list[Spec]:
    """Lines from the value to its bits, and down from row to row as long as they stay 1."""
    links: list[Spec] = []
    for bit in range(params.k):
        alive, here = shown.signal >> bit & 1, bit + 0.41
        if alive:
            links.append({"x": params.k / 2, "y": 22, "x2": here, "y2": _top(0) - 4})
        for row, bits in enumerate((shown.permanent, shown.report.bits), 1):
            alive &= bits >> bit
            if alive:
                links.append({"x": here, "x2": here, "y": _top(row) - _GAP, "y2": _top(row)})
    return links
