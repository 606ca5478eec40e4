"""The summary page: one self-contained HTML file, light and dark, without scripts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

from rappor.charts.theme import FONT, colours
from regression.measure import Counted, Figures

Column = tuple[str, str, Callable[[Figures], str]]  # heading, explanation, text of a row

GROUPS = {
    "tiny": "Tiny: 100 strings, 1,000 reports: too little data on purpose",
    "small": "Small: 100 strings, 1,000,000 reports",
    "medium": "Medium: 1,000 strings, 10,000,000 reports",
    "large": "Large: 10,000 strings, 100,000,000 reports",
    "demo": "Demos: 100 strings, 10,000 clients with 10 reports each, a value drawn anew each time",
}

_TITLE = "Regression grid"
_LONG_TITLE = "google/rappor's regression grid, simulated and decoded by rappor"


def page(
    rows: Sequence[Figures], reference: Sequence[Figures], counted: Sequence[Counted], about: str
) -> str:
    """The whole page."""
    parts = [
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
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(_TITLE)}</title>\n<style>\n{_style()}\n</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(parts)
        + "\n</main>\n</body>\n</html>\n"
    )


def headline(rows: Sequence[Figures]) -> str:
    """What came out, in a sentence or two."""
    good = [row for row in rows if not row.error]
    failed = len(rows) - len(good)
    detected = sum(row.detected for row in good)
    false = sum(row.false_positives for row in good)
    covered = sum(row.covered for row in good)
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


def _sizes(rows: Sequence[Figures]) -> str:
    """A line for each size: what was detected, and how true it is."""
    body = []
    for name in GROUPS:
        here = [row for row in rows if row.group == name]
        if not here:
            continue
        good = [row for row in here if not row.error]
        detected, false, covered = (
            sum(getattr(row, column) for row in good)
            for column in ("detected", "false_positives", "covered")
        )
        fdr = false / max(1, detected)
        body.append(
            f"<tr><th scope=row>{name}</th><td class=n>{len(here)}</td>"
            f"<td class=n>{len(here) - len(good)}</td><td class=n>{_figure(detected)}</td>"
            f"<td class=n>{_figure(false)}</td><td class=n>{_percent(fdr)}</td>"
            f"<td class=n>{_figure(covered)} of {_figure(detected)}</td>"
            f"<td class=n>{sum(row.seconds for row in here):.1f}</td></tr>"
        )
    heads = ("cells", "failed", "detected", "false", "FDR", "covered", "seconds")
    return (
        '<div class="wide" tabindex="0"><table><thead><tr><th scope=col>size</th>'
        + "".join(f"<th scope=col class=n>{name}</th>" for name in heads)
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
    ("N", "reports", lambda row: f"{row.reports:,}"),
    ("k × m", "bits and cohorts", lambda row: f"{row.bits} × {row.cohorts}"),
    ("present", "strings held", lambda row: _figure(row.present)),
    (
        "listed (present)",
        "candidates, and those of them that are held",
        lambda row: f"{_figure(row.listed)} ({_figure(row.present_listed)})",
    ),
    ("detected", "", lambda row: _figure(row.detected)),
    ("true", "true positives", lambda row: _figure(row.true_positives)),
    ("false", "false positives", lambda row: _figure(row.false_positives)),
    ("missed", "listed, present, not detected", lambda row: _figure(row.missed)),
    ("FDR", "false / detected", lambda row: _percent(row.fdr)),
    ("L1", "L1 distance", lambda row: f"{row.l1:.3f}"),
    ("TV", "total variation distance", lambda row: f"{row.total_variation:.3f}"),
    ("mass found", "true share of what was detected", lambda row: _percent(row.mass_found)),
    ("estimated", "sum of the estimates", lambda row: _percent(row.mass_estimated)),
    (
        "covered",
        "95 % intervals that hold the truth",
        lambda row: f"{_figure(row.covered)} of {_figure(row.detected)}",
    ),
    ("seconds", "to simulate and decode", lambda row: f"{row.seconds:.1f}"),
)


def _table(rows: Sequence[Figures], *, decoder: bool = False) -> str:
    heads = ["<th scope=col>cell</th>"] + ["<th scope=col>decoder</th>"] * decoder
    heads += [
        f'<th scope=col class=n title="{escape(about)}">{escape(name)}</th>'
        for name, about, _ in COLUMNS
    ]
    body = "\n".join(_row(row, decoder) for row in rows)
    return (
        f'<div class="wide" tabindex="0"><table>\n<thead><tr>{"".join(heads)}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def _row(row: Figures, decoder: bool) -> str:
    cells = [f"<th scope=row>{escape(row.cell)}</th>"]
    if decoder:
        cells.append(f"<td>{escape(row.decoder)}</td>")
    if row.error:
        cells.append(f"<td colspan={len(COLUMNS)} class=bad>failed: {escape(row.error)}</td>")
        return f"<tr class=failed>{''.join(cells)}</tr>"
    for name, _, text in COLUMNS:
        shown = text(row)
        if name == "seconds" and row.decoder != "rappor":
            shown = "not stored"
        if name == "TV":  # a bar as long as the distance, beside the number
            width = min(100.0, 100 * row.total_variation)
            cells.append(f'<td class="n bar" style="--w:{width:.0f}%">{shown}</td>')
            continue
        worry = name == "false" and row.fdr > 0.2 and row.false_positives > 2
        cells.append(f'<td class="n{" warn" if worry else ""}">{shown}</td>')
    return f"<tr>{''.join(cells)}</tr>"


def _counted(rows: Sequence[Counted]) -> str:
    body = "".join(
        f"<tr><th scope=row>{escape(row.name)}</th><td class=n>{row.reports:,}</td>"
        f"<td class=n>{row.malformed}</td>"
        + ("<td>the same counts</td>" if row.same else "<td class=bad>other counts</td>")
        + "</tr>"
        for row in rows
    )
    return (
        "<p>Its reports.csv, counted here, beside its counts.csv.</p>"
        '<div class="wide" tabindex="0"><table><thead><tr><th scope=col>set</th>'
        "<th scope=col class=n>reports</th>"
        "<th scope=col class=n>malformed</th><th scope=col>outcome</th></tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _style() -> str:
    names = ("bg", "surface", "line", "text", "muted", "accent", "bar", "warn", "warn-bg", "bad")
    themes = {
        theme: "".join(f"--{name}:{colours(theme)[name]};" for name in (*names, "bad-bg"))
        for theme in ("light", "dark")
    }
    return f""":root{{color-scheme:light dark;{themes["light"]}}}
@media (prefers-color-scheme:dark){{:root{{{themes["dark"]}}}}}
body{{margin:0;background:var(--bg);color:var(--text);font:15px/1.5 {FONT}}}
main{{max-width:92rem;margin:0 auto;padding:1.5rem}}
h1{{font-size:1.5rem;margin:0 0 .5rem}} h2{{font-size:1.2rem;margin:2rem 0 .5rem}}
h3{{font-size:1rem;margin:1.5rem 0 .5rem;color:var(--muted);font-weight:600}}
.lead{{font-size:1.1rem;max-width:60rem}} details{{max-width:60rem;color:var(--muted)}}
summary{{cursor:pointer;color:var(--accent)}}
.wide{{overflow-x:auto;border:1px solid var(--line);border-radius:6px}}
table{{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;font-size:.85rem}}
th,td{{padding:.3rem .5rem;text-align:left;white-space:nowrap;border-bottom:1px solid var(--line)}}
tbody tr:last-child>*{{border-bottom:0}}
thead th{{background:var(--surface);color:var(--muted);font-weight:600}}
tbody th{{font-weight:500}} .n{{text-align:right}}
.bar{{background:linear-gradient(90deg,var(--bar) var(--w),transparent 0)
0 100%/100% 3px no-repeat}}
.warn{{color:var(--warn);background:var(--warn-bg)}}
.bad{{color:var(--bad);background:var(--bad-bg);white-space:normal}}
@media print{{main{{max-width:none}} .wide{{overflow:visible}}}}"""
