"""The summary page: one self-contained HTML file, light and dark, without scripts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

from rappor.experiments.pages import whole_page
from rappor.simulate import Judgement
from regression.measure import Counted, Figures

# heading, explanation, text of a row and its figures
Column = tuple[str, str, Callable[[Figures, Judgement], str]]

GROUPS = {
    "tiny": "Tiny: 100 strings, 1,000 reports: too little data on purpose",
    "small": "Small: 100 strings, 1,000,000 reports",
    "medium": "Medium: 1,000 strings, 10,000,000 reports",
    "large": "Large: 10,000 strings, 100,000,000 reports",
    "demo": "Demos: 100 strings, 10,000 clients with 10 reports each, another value each time",
}

_TITLE = "Regression grid"
_LONG_TITLE = "google/rappor's regression grid, simulated and decoded by rappor"
_FOOTER = "Made by <code>benchmarks/regtest.py</code>. The page needs no network."
# Beyond the style sheet of `rappor reproduce`: wide tables of numbers.
_RULES = """
main, footer { max-width: 92rem; }
main { padding-top: 1.5rem; }
.lead { font-size: 1.1rem; max-width: 60rem; }
details, details p { max-width: 60rem; color: var(--muted); }
summary { cursor: pointer; color: var(--accent); }
.wide { border: 1px solid var(--line); border-radius: 6px; }
.wide table { font-size: .85rem; }
.wide th, .wide td { padding: .3rem .5rem; white-space: nowrap; }
.wide thead th { background: var(--surface); }
.wide tbody th { font-weight: 500; }
.wide tbody tr:last-child > * { border-bottom: 0; }
.bar { background: linear-gradient(90deg, var(--bar) var(--w), transparent 0)
  0 100%/100% 3px no-repeat; }
.warn { color: var(--warn); background: var(--warn-bg); }
.wide td.bad { color: var(--bad); background: var(--bad-bg); white-space: normal; }
@media print { .wide { overflow: visible; } }
"""


def page(
    rows: Sequence[Figures], reference: Sequence[Figures], counted: Sequence[Counted], about: str
) -> str:
    """The whole page."""
    parts = [
        "<main>",
        f"<h1>{escape(_LONG_TITLE)}</h1>",
        f'<p class="lead">{escape(headline(rows))}</p>',
        _how(about),
        "<h2>By size</h2>",
        _sizes(rows),
        "<h2>The grid</h2>",
        *(_group(name, [row for row in rows if row.group == name]) for name in GROUPS),
    ]
    if reference:
        parts += [
            "<h2>Beside google/rappor’s own decoder</h2>",
            "<p>The same counts, decoded here and by google/rappor’s R code, whose results are "
            "stored with the data. Its coverage counts how often the true share lies in its own "
            "95 % interval; its running time was not stored.</p>",
            _table(reference, decoder=True),
        ]
    if counted:
        parts += ["<h2>Reports of google/rappor’s own client</h2>", _counted(counted)]
    return whole_page(_TITLE, [*parts, "</main>"], _FOOTER, _RULES)


def headline(rows: Sequence[Figures]) -> str:
    """What came out, in a sentence or two."""
    good = _good(rows)
    failed = len(rows) - len(good)
    detected = sum(found.detected for found in good)
    false = sum(found.false_positives for found in good)
    covered = sum(found.covered for found in good)
    if failed:
        outcome = f"{failed} of {len(rows)} cells FAILED; their rows say why."
    else:
        outcome = f"All {len(rows)} cells ran."
    if not detected:
        return f"{outcome} Nothing was detected."
    return (
        f"{outcome} Of {detected:,.0f} strings detected at FDR 5 %, {false:,.0f} "
        f"({_percent(false / detected)}) are held by nobody; {_percent(covered / detected)} of the "
        "95 % intervals contain the true share."
    )


def _good(rows: Sequence[Figures]) -> list[Judgement]:
    """The figures of rows without an error."""
    return [row.found for row in rows if row.found is not None and not row.error]


def _sizes(rows: Sequence[Figures]) -> str:
    """A line for each size: what was detected, and how true it is."""
    body = []
    for name in GROUPS:
        here = [row for row in rows if row.group == name]
        if not here:
            continue
        good = _good(here)
        detected, false, covered = (
            sum(getattr(found, column) for found in good)
            for column in ("detected", "false_positives", "covered")
        )
        fdr = false / max(1, detected)
        body.append(
            f"<tr><th scope=row>{name}</th><td class=number>{len(here)}</td>"
            f"<td class=number>{len(here) - len(good)}</td>"
            f"<td class=number>{_figure(detected)}</td>"
            f"<td class=number>{_figure(false)}</td><td class=number>{_percent(fdr)}</td>"
            f"<td class=number>{_figure(covered)} of {_figure(detected)}</td>"
            f"<td class=number>{sum(row.seconds or 0.0 for row in here):.1f}</td></tr>"
        )
    heads = ("cells", "failed", "detected", "false", "FDR", "covered", "seconds")
    return (
        '<div class="scroll wide" tabindex="0"><table><thead><tr><th scope=col>size</th>'
        + "".join(f"<th scope=col class=number>{name}</th>" for name in heads)
        + f"</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def _how(about: str) -> str:
    return f"""<details open><summary>How to read this</summary>
<p>{escape(about)}</p>
<p>Shapes, sizes and configurations are those of google/rappor’s <code>tests/regtest_spec.py</code>:
<em>typical</em> (k = 8, h = 2, m = 128, f = .45, p = .39, q = .61; a tenth of the strings is not on
the candidate list, and a fifth more candidates are held by nobody), <em>sharp</em> (exactly the
right list), <em>loose</em> (f = 0, p = .225, q = .775), <em>over_x2</em> and <em>over_x10</em> (two
and ten times as many absent candidates as strings). All sizes are run in full: counts are drawn
from their exact distribution, not report by report, which for 100,000,000 reports memory would not
allow.</p>
<ul>
<li><b>Present</b>: strings that at least one report holds; <b>listed</b>: candidates, and of those
how many are present.</li>
<li><b>True</b>, <b>false</b>: detected strings that are present, and that nobody holds;
<b>missed</b>: listed and present, but not detected.</li>
<li><b>FDR</b>: the share of detections that are false. 0 where there are none.</li>
<li><b>L1</b>: Σ |estimated − true share| over all strings, those not detected estimated as 0; half
of it is the total variation distance <b>TV</b>. Finding nothing gives .5, finding all .0.</li>
<li><b>Mass found</b>: reports that hold a detected string; <b>estimated</b>: what the estimates add
up to.</li>
<li><b>Covered</b>: detected strings whose 95 % interval contains the true share.</li>
</ul>
<p>Where much of the mass is not listed or cannot be told apart (medium and large cells ask for
1,000 and 10,000 strings from k × m = 1,024 counts), what is not detected adds to what is: estimates
may sum to more than the mass found, and intervals may cover less than the 95 % that they state. The
columns show how far.</p></details>"""


def _group(name: str, rows: list[Figures]) -> str:
    if not rows:
        return ""
    return f"<h3>{escape(GROUPS[name])}</h3>\n{_table(rows)}"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


COLUMNS: tuple[Column, ...] = (
    ("N", "reports", lambda row, _: f"{row.reports:,}"),
    ("k × m", "bits and cohorts", lambda row, _: f"{row.bits} × {row.cohorts}"),
    ("present", "strings held", lambda _, found: _figure(found.present)),
    (
        "listed (present)",
        "candidates, and those of them that are held",
        lambda _, found: f"{_figure(found.listed)} ({_figure(found.present_listed)})",
    ),
    ("detected", "", lambda _, found: _figure(found.detected)),
    ("true", "true positives", lambda _, found: _figure(found.true_positives)),
    ("false", "false positives", lambda _, found: _figure(found.false_positives)),
    ("missed", "listed, present, not detected", lambda _, found: _figure(found.missed)),
    ("FDR", "false / detected", lambda _, found: _percent(found.fdr)),
    ("L1", "L1 distance", lambda _, found: f"{found.l1:.3f}"),
    ("TV", "total variation distance", lambda _, found: f"{found.total_variation:.3f}"),
    ("mass found", "true share of what was detected", lambda _, found: _percent(found.mass_found)),
    ("estimated", "sum of the estimates", lambda _, found: _percent(found.mass_estimated)),
    (
        "covered",
        "95 % intervals that hold the truth",
        lambda _, found: f"{_figure(found.covered)} of {_figure(found.detected)}",
    ),
    (
        "seconds",
        "to simulate and decode",
        lambda row, _: "not stored" if row.seconds is None else f"{row.seconds:.1f}",
    ),
)


def _table(rows: Sequence[Figures], *, decoder: bool = False) -> str:
    heads = ["<th scope=col>cell</th>"] + ["<th scope=col>decoder</th>"] * decoder
    heads += [
        f'<th scope=col class=number title="{escape(about)}">{escape(name)}</th>'
        for name, about, _ in COLUMNS
    ]
    body = "\n".join(_row(row, decoder) for row in rows)
    return (
        f'<div class="scroll wide" tabindex="0"><table>\n<thead><tr>{"".join(heads)}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def _row(row: Figures, decoder: bool) -> str:
    cells = [f"<th scope=row>{escape(row.cell)}</th>"]
    if decoder:
        cells.append(f"<td>{escape(row.decoder)}</td>")
    if row.found is None or row.error:
        cells.append(f"<td colspan={len(COLUMNS)} class=bad>failed: {escape(row.error)}</td>")
        return f"<tr>{''.join(cells)}</tr>"
    for name, _, text in COLUMNS:
        shown = text(row, row.found)
        if name == "TV":  # a bar as long as the distance, next to the number
            width = min(100.0, 100 * row.found.total_variation)
            cells.append(f'<td class="number bar" style="--w:{width:.0f}%">{shown}</td>')
            continue
        worry = name == "false" and row.found.fdr > 0.2 and row.found.false_positives > 2
        cells.append(f'<td class="number{" warn" if worry else ""}">{shown}</td>')
    return f"<tr>{''.join(cells)}</tr>"


def _counted(rows: Sequence[Counted]) -> str:
    body = "".join(f"<tr><th scope=row>{escape(row.name)}</th>{_outcome(row)}</tr>" for row in rows)
    return (
        "<p>Its reports.csv, counted here, and its counts.csv.</p>"
        '<div class="scroll wide" tabindex="0"><table><thead><tr><th scope=col>set</th>'
        "<th scope=col class=number>reports</th>"
        "<th scope=col class=number>malformed</th><th scope=col>outcome</th></tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _outcome(row: Counted) -> str:
    if row.error:
        return f"<td colspan=3 class=bad>failed: {escape(row.error)}</td>"
    return f"<td class=number>{row.reports:,}</td><td class=number>{row.malformed}</td>" + (
        "<td>the same counts</td>" if row.same else "<td class=bad>other counts</td>"
    )
