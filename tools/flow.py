"""The life of a report as a picture (SVG), drawn from what the real code makes of a value.

The bits are those of a real encoder, the counts those of a simulated crowd, the table what `decode`
says about them. Secret, coins and seed are fixed, so the same code draws the same picture, and a
test can tell whether docs/pictures has the one of today.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from html import escape

import rappor
from rappor.charts.numbers import show_finding, show_part
from rappor.charts.theme import FONT, MONO, colours
from rappor.mechanism import Trace
from rappor.privacy.rounding import up
from rappor.testing import SeededEntropy

VALUE = "example.com"
PARAMS = rappor.Params(k=32, h=2, m=8, f=0.5, p=0.5, q=0.75)
TRUTH = {"example.com": 0.40, "example.org": 0.25, "example.net": 0.10, "unlisted.example": 0.25}
CANDIDATES = ("example.com", "example.org", "example.net", "example.edu")
REPORTS, SEED = 200_000, 7
WIDTH, HEIGHT = 520, 664
LEFT, CELL, TALL = 146, 11, 20  # pixels: where bits begin, the width of one, its height
BAR, SCALE = 150, 4.5  # pixels: where shares begin, and for one percent


def trace() -> Trace:
    """B, B' and S of one client."""
    encoder = rappor.Encoder(
        PARAMS,
        secret=hashlib.sha256(b"the picture of a report").digest(),
        collection="homepage",
        entropy=SeededEntropy("the picture of a report"),
    )
    return encoder.trace(VALUE)


def draw(theme: str) -> str:
    """The picture in the light or the dark theme."""
    colour = colours(theme)
    words = (
        f"A value becomes a Bloom filter B of {PARAMS.k} bits, then the permanent response B', "
        "then the report S, on the client. Outside, bits of all reports are counted, and "
        "candidate strings are decoded into shares with intervals."
    )
    parts = "\n".join(_parts(colour))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" role="img" font-family="{escape(FONT)}" '
        f'font-size="14" fill="{colour["text"]}">\n'
        f"<title>The life of a report</title>\n<desc>{escape(words)}</desc>\n"
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{colour["bg"]}"/>\n{parts}\n</svg>\n'
    )


def _parts(colour: dict[str, str]) -> Iterator[str]:
    shown = trace()
    yield _band(8, 356, "On the client", colour)
    yield _text(LEFT, 36, VALUE, colour, mono=True, bold=True)
    steps = (
        ("B", shown.signal, "Bloom filter", f"{PARAMS.h} hash functions set {PARAMS.h} bits"),
        ("B'", shown.permanent, "permanent", "each bit flipped with probability f/2, once for all"),
        ("S", shown.report.bits, "sent", "a 1 is sent as 1 with probability q, a 0 with p"),
    )
    bounds = (
        "",
        f"bounds ε of all reports: {up(rappor.privacy.epsilon_infinity(PARAMS))}",
        f"bounds ε of one report: {up(rappor.privacy.epsilon_one(PARAMS))}",
    )
    for row, (name, bits, about, rule) in enumerate(steps):
        top = 84 + 100 * row
        yield _arrow(top - 38, top - 10, colour)
        yield _text(LEFT + 20, top - 20, rule, colour, muted=True)
        yield _text(20, top + 15, name, colour, bold=True)
        yield _text(46, top + 15, about, colour)
        yield from _bits(top, bits, shown.signal, colour)
        yield _text(LEFT, top + 38, bounds[row], colour, muted=True)
    yield _arrow(334, 392, colour)
    yield _text(LEFT + 20, 386, "cohort and S: all that leaves the client", colour, bold=True)
    yield _band(398, 258, "On the server", colour)
    yield from _server(shown, colour)


def _server(shown: Trace, colour: dict[str, str]) -> Iterator[str]:
    counts = rappor.simulate.counts(TRUTH, PARAMS, reports=REPORTS, seed=SEED)
    cohort = shown.report.cohort
    ones, total = counts.ones[cohort], counts.totals[cohort]
    yield _text(20, 448, "counts of bits", colour)
    yield _text(20, 466, f"in cohort {cohort}", colour, muted=True)
    for bit in range(PARAMS.k):
        high = round(60 * float(ones[bit]) / float(total))
        mine = colour["c2"] if shown.signal >> bit & 1 else colour["c1"]
        yield _box(LEFT + CELL * bit, 472 - high, CELL - 2, high, mine)
    yield _arrow(482, 512, colour)
    line = f"{REPORTS:,} reports, {len(CANDIDATES)} candidate strings"
    yield _text(LEFT + 20, 502, line, colour, muted=True)
    decoded = rappor.decode(counts, CANDIDATES)
    for place, string in enumerate(CANDIDATES):
        row, top = decoded.row(string), 520 + 24 * place
        yield _text(20, top + 14, string, colour, mono=True)
        if row.detected:
            ends = row.prop_low_95, row.prop_high_95
            middle, low, high = (100 * share for share in (row.proportion, *ends))
            if not row.presence_only:
                yield _box(BAR, top + 2, SCALE * middle, 14, colour["bar"])
            yield _box(BAR + SCALE * low, top + 8, SCALE * (high - low), 2, colour["text"])
            said = str(show_finding(row.proportion, *ends, row.detected))
        else:
            said = "not detected"
        yield _text(360, top + 14, said, colour)
    mass = decoded.undetected_mass
    shown = show_part(mass.proportion, mass.prop_low_95, mass.prop_high_95)
    said = f"undetected, not on the list or too rare: {shown}"
    yield _text(20, 520 + 24 * len(CANDIDATES) + 18, said, colour, muted=True)


def _band(top: int, high: int, name: str, colour: dict[str, str]) -> str:
    box = f'<rect x="6" y="{top}" width="{WIDTH - 12}" height="{high}" rx="8"'
    box += f' fill="{colour["surface"]}" stroke="{colour["line"]}"/>'
    return box + _text(20, top + 28, name, colour, bold=True)


def _bits(top: int, bits: int, signal: int, colour: dict[str, str]) -> Iterator[str]:
    for bit in range(PARAMS.k):
        mine, is_one = signal >> bit & 1, bits >> bit & 1
        fill = (colour["c2"] if mine else colour["c1"]) if is_one else colour["line"]
        edge = f' stroke="{colour["c2"]}" stroke-width="2"' if mine else ""
        yield _box(LEFT + CELL * bit, top, CELL - 2, TALL, fill, edge)


def _box(x: float, y: float, width: float, height: float, fill: str, more: str = "") -> str:
    place = f'x="{x:.0f}" y="{y:.0f}" width="{max(width, 1):.0f}" height="{height:.0f}"'
    return f'<rect {place} fill="{fill}"{more}/>'


def _arrow(top: int, bottom: int, colour: dict[str, str]) -> str:
    x, edge = LEFT + 6, colour["edge"]
    return (
        f'<path d="M{x} {top}V{bottom - 6}" stroke="{edge}" stroke-width="2"/>'
        f'<path d="M{x - 5} {bottom - 7}h10l-5 7z" fill="{edge}"/>'
    )


def _text(
    x: int,
    y: int,
    words: str,
    colour: dict[str, str],
    *,
    mono: bool = False,
    bold: bool = False,
    muted: bool = False,
) -> str:
    look = f' font-family="{escape(MONO)}"' if mono else ""
    look += ' font-weight="600"' if bold else ""
    look += f' fill="{colour["muted"]}" font-size="13"' if muted else ""
    return f'<text x="{x}" y="{y}"{look}>{escape(words)}</text>'
