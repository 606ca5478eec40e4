"""The pages of `rappor reproduce`: published numbers, ours, verdicts, figures and tables.

Every word from an outcome is escaped. A page has no script and refers only to files in its folder.
`make regtest` uses the same style sheet, made from the tokens of `rappor.charts.theme`. Light or
dark follows the reader's system; paper is always light.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from numbers import Integral, Real
from typing import Any

from rappor.charts.theme import FONT, MONO, TOKENS, Spec, colours
from rappor.experiments.experiment import Figure, Table
from rappor.experiments.summary import ENOUGH_SEEDS, Document, RunRecord, entry, verdict_words

PAPER = (
    "Erlingsson, Pihur, Korolova: RAPPOR: Randomized Aggregatable Privacy-Preserving Ordinal "
    "Response, CCS 2014"
)
_FOOTER = (
    "Made by <code>rappor reproduce</code>; the same seeds give the same numbers. The page needs "
    "no network."
)
_MARK = {"agrees": "✓", "differs": "≠", "extra": "+"}


def experiment_page(done: RunRecord) -> str:
    """The page of one experiment, for NAME/index.html."""
    item = entry(done)
    parts = [
        '<header><p class="source"><a href="../index.html">All experiments</a></p>',
        f"<h1>{escape(item['title'])}</h1>",
        f'<p class="source">{escape(item["source"])} · {_run(item)}</p></header><main>',
        _labels(item),
    ]
    if done.experiment is not None:
        parts.append(f"<p>{escape(done.experiment.about)}</p>")
    if done.outcome is not None:
        found = done.outcome
        sections = [("verdicts", "The paper and this software")]
        sections += [(figure.name, figure.title) for figure in found.figures]
        sections += [(table.name, table.title) for table in found.tables]
        sections += [("remarks", "Remarks")] * bool(found.text)
        parts += [
            _contents((f"#{name}", title, "") for name, title in sections),
            '<h2 id="verdicts">The paper and this software</h2>',
            _verdicts(item),
            *map(_figure, found.figures),
            *map(_table, found.tables),
        ]
        if found.text:
            parts.append('<h2 id="remarks">Remarks</h2>')
            parts += [f"<p>{escape(paragraph)}</p>" for paragraph in found.text]
    parts.append("</main>")
    return whole_page(item["title"], parts, _FOOTER)


def index_page(document: Document) -> str:
    """The page of all experiments, for index.html."""
    items: Document = document["experiments"]
    verdicts = [
        comparison["verdict"] for item in items.values() for comparison in item["comparisons"]
    ]
    failed = sum(item["failed"] is not None for item in items.values())
    extra = verdicts.count("extra")
    total = (
        f"{len(verdicts) - extra} published figures and statements are compared with ours: "
        f"{verdicts.count('agrees')} agree and {verdicts.count('differs')} differ, each with the "
        f"reason. {extra} more are not in the paper, or agree by construction (marked: extra)."
        + f" {failed} of the experiments failed."
        * (failed > 0)
    )
    parts = [
        "<header><h1>The paper, reproduced</h1>",
        f'<p class="source">{escape(PAPER)}</p></header><main>',
        f"<p>{escape(total)} Numbers that depend on chance are means ± standard deviations between "
        "seeds. Where the paper’s data are private, a synthetic stand-in is used and labelled as "
        "such.</p>",
        _contents((f"#{name}", item["title"], verdict_words(item)) for name, item in items.items()),
    ]
    for name, item in items.items():
        parts += [
            f'<section id="{escape(name)}"><h2>{escape(item["title"])}</h2>',
            f'<p class="source">{escape(item["source"])} · {_run(item)} · '
            f'<a href="{escape(item["page"])}">figures, tables and remarks</a></p>',
            _labels(item),
            _first_picture(name, item),
            _verdicts(item),
            "</section>",
        ]
    parts.append("</main>")
    return whole_page("The paper, reproduced", parts, _FOOTER)


def _first_picture(experiment: str, item: Document) -> str:
    """The first figure of an experiment, as a link to its page."""
    if item["failed"] is not None or not item.get("figures"):
        return ""
    figure = item["figures"][0]
    caption, stem = escape(figure["caption"]), escape(f"{experiment}/{figure['name']}")
    return (
        f'<figure><div class="scroll"><a href="{escape(item["page"])}"><picture>'
        f'<source media="screen and (prefers-color-scheme: dark)" srcset="{stem}-dark.svg">'
        f'<img src="{stem}.svg" alt="{caption}" loading="lazy"></picture></a></div></figure>'
    )


def _run(item: Document) -> str:
    few = "" if item["seeds"] >= ENOUGH_SEEDS else f" (a quick look: {ENOUGH_SEEDS} are usual)"
    replicates = item.get("replicates", f"{item['seeds']} seeds")
    return f"{escape(replicates)}{few}, {item['seconds']:g} s"


def _labels(item: Document) -> str:
    labels = ""
    if item["stand_in"]:
        labels += f'<p class="label"><strong>Stand-in data.</strong> {escape(item["stand_in"])}</p>'
    if item["failed"] is not None:
        labels += f'<p class="failed"><strong>Failed.</strong> {escape(item["failed"])}</p>'
    return labels


def _contents(links: Iterable[tuple[str, str, str]]) -> str:
    lines = [
        f'<li><a href="{escape(target)}">{escape(title)}</a>'
        + (f' <span class="note">{escape(words)}</span>' if words else "")
        + "</li>"
        for target, title, words in links
    ]
    return f'<nav class="contents" aria-label="Contents"><ul>{"".join(lines)}</ul></nav>'


def _verdicts(item: Document) -> str:
    if not item["comparisons"]:
        return ""
    head = "".join(
        f'<th scope="col">{name}</th>' for name in ("What", "Published", "Ours", "Verdict", "Why")
    )
    rows = []
    for comparison in item["comparisons"]:
        verdict = str(comparison["verdict"])
        word = f'<span class="verdict {escape(verdict)}">{_MARK.get(verdict, "")} {escape(verdict)}'
        rows.append(
            f'<tr><th scope="row">{escape(comparison["what"])}</th>'
            f'<td data-label="Published">{escape(comparison["published"])}</td>'
            f'<td data-label="Ours">{escape(comparison["ours"])}</td>'
            f"<td>{word}</span></td><td>{escape(comparison['why'])}</td></tr>"
        )
    return (
        f'<table class="verdicts"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _figure(figure: Figure) -> str:
    name = escape(figure.name)
    return (
        f'<h2 id="{name}">{escape(figure.title)}</h2><figure><div class="scroll"><picture>'
        f'<source media="screen and (prefers-color-scheme: dark)" srcset="{name}-dark.svg">'
        f'<img src="{name}.svg" alt="{escape(figure.caption)}"></picture></div>'
        f"<figcaption>{escape(figure.caption)} "
        f'<span class="files"><a href="{name}.svg">SVG</a> <a href="{name}.png">PNG</a></span>'
        "</figcaption></figure>"
    )


def _table(table: Table) -> str:
    name = escape(table.name)
    numeric = [
        all(_is_number(row[column]) for row in table.rows) and bool(table.rows)
        for column in range(len(table.columns))
    ]
    align = [' class="number"' if is_number else "" for is_number in numeric]
    head = "".join(
        f'<th scope="col"{how}>{escape(column)}</th>'
        for column, how in zip(table.columns, align, strict=True)
    )
    rows = "".join(
        "<tr>"
        + "".join(
            f"<td{how}>{escape(shown(cell))}</td>" for cell, how in zip(row, align, strict=True)
        )
        + "</tr>"
        for row in table.rows[: table.show]
    )
    note = f" {table.note}" if table.note else ""
    left = len(table.rows) - table.show
    more = f" The file has {left:,} more rows." if left > 0 else ""
    return (
        f'<h2 id="{name}">{escape(table.title)}</h2><div class="scroll"><table class="data">'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        f'<p class="note">{escape(note + more)} <span class="files">'
        f'<a href="{name}.csv">CSV</a></span></p>'
    )


def _is_number(cell: object) -> bool:
    return isinstance(cell, Real) and not isinstance(cell, bool)


def shown(cell: Any) -> str:
    """A cell of a table, written for people.

    >>> shown(186792), shown(0.6339745962), shown(True), shown("V_1")
    ('186,792', '0.634', 'yes', 'V_1')
    """
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, Integral):
        return f"{int(cell):,}"
    if isinstance(cell, Real):
        number = float(cell)
        return f"{number:,.0f}" if 1e4 <= abs(number) < 1e15 else f"{number:.4g}"
    return "" if cell is None else str(cell)


_RULES = """
* { box-sizing: border-box; }
html { color-scheme: light dark; -webkit-text-size-adjust: 100%; scroll-behavior: smooth; }
body { margin: 0; background: var(--bg); color: var(--text); font: 16px/1.55 FONT; }
main, header, footer { max-width: 60rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 1.75rem; }
footer { padding-top: 1.5rem; padding-bottom: 3rem; color: var(--muted); font-size: .875rem; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: .25rem 0 .5rem; text-wrap: balance; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .75rem; scroll-margin-top: 1rem; }
h3 { font-size: 1rem; margin: 1.75rem 0 .5rem; }
p { max-width: 46rem; margin: .5rem 0 .75rem; }
a { color: var(--accent); text-underline-offset: .15em; }
a:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 2px; }
.source, .note { color: var(--muted); font-size: .875rem; }
.label { background: var(--warn-bg); color: var(--warn); border-left: 4px solid var(--warn);
  padding: .6rem .9rem; border-radius: 0 6px 6px 0; max-width: 46rem; }
.failed { background: var(--bad-bg); color: var(--bad); border-left: 4px solid var(--bad);
  padding: .6rem .9rem; border-radius: 0 6px 6px 0; max-width: 46rem; overflow-wrap: anywhere; }
nav.contents { background: var(--surface); border: 1px solid var(--line); border-radius: 8px;
  padding: .75rem 1.25rem; margin: 1.25rem 0; }
nav.contents ul { margin: 0; padding: 0; list-style: none; display: grid; gap: .2rem 1.5rem;
  grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); }
nav.contents .note { white-space: nowrap; }
.scroll { overflow-x: auto; margin: .5rem 0; }
table { border-collapse: collapse; width: 100%; font-size: .9375rem; }
caption { text-align: left; color: var(--muted); font-size: .875rem; padding-bottom: .4rem; }
th, td { text-align: left; vertical-align: top; padding: .45rem .9rem .45rem 0;
  border-bottom: 1px solid var(--line); }
th { color: var(--muted); font-weight: 600; font-size: .8125rem; }
tbody th { color: var(--text); font-size: inherit; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.verdicts { table-layout: fixed; }
.verdicts thead th:nth-child(1) { width: 18%; } .verdicts thead th:nth-child(2) { width: 16%; }
.verdicts thead th:nth-child(3) { width: 23%; } .verdicts thead th:nth-child(4) { width: 11%; }
.data { width: auto; }
.data td, .data th { white-space: nowrap; padding-right: 2rem; }
.verdict { display: inline-block; padding: .05rem .55rem; border-radius: 999px; font-weight: 600;
  font-size: .8125rem; white-space: nowrap; }
.agrees { background: var(--ok-bg); color: var(--ok); }
.differs { background: var(--warn-bg); color: var(--warn); }
.extra { background: var(--surface); color: var(--muted); }
.failure { background: var(--bad-bg); color: var(--bad); }
figure { margin: 1rem 0 1.5rem; }
figure .scroll { border: 1px solid var(--line); border-radius: 8px; background: var(--bg);
  text-align: center; }
figure img { display: block; height: auto; max-width: 100%; min-width: min(100%, 36rem);
  margin: 0 auto; }
figcaption { color: var(--muted); font-size: .875rem; max-width: 46rem; margin-top: .5rem; }
code { font-family: MONO; font-size: .9em; }
@media (max-width: 44rem) {
  figure img { min-width: 36rem; }
  .verdicts thead { position: absolute; width: 1px; height: 1px; overflow: hidden;
    clip-path: inset(50%); }
  .verdicts, .verdicts tbody, .verdicts tr, .verdicts td, .verdicts tbody th {
    display: block; width: auto; }
  .verdicts tr { border: 1px solid var(--line); border-radius: 8px; padding: .6rem .9rem;
    margin-bottom: .75rem; }
  .verdicts td, .verdicts tbody th { border: 0; padding: .1rem 0; }
  .verdicts td[data-label]::before { content: attr(data-label) ": "; color: var(--muted);
    font-size: .8125rem; }
}
@media print {
  body { font-size: 10pt; }
  main, header, footer { max-width: none; padding: 0; }
  nav.contents, .files { display: none; }
  figure, tr { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
  figure .scroll { border: 0; }
  a { color: inherit; text-decoration: none; }
}
"""


def whole_page(title: str, parts: Iterable[str], footer: str, rules: str = "") -> str:
    """An HTML document around its parts.

    Args:
        title: of the window; escaped here.
        parts: of the body, in HTML.
        footer: in HTML.
        rules: further rules of style, for this page alone.
    """
    body = "\n".join(part for part in parts if part)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)} · rappor</title>\n<style>{style_sheet()}{rules}</style></head>\n"
        f"<body>\n{body}\n<footer>{footer}</footer>\n</body></html>\n"
    )


def style_sheet() -> str:
    """The rules of every page, with the colours of both themes."""
    rules = _RULES.replace("FONT", FONT).replace("MONO", MONO)
    dark = f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {_set('dark')} }} }}"
    return f":root {{ {_set('light')} }}\n{dark}{rules}"


def _set(theme: str) -> str:
    return " ".join(f"--{name}: {colour};" for name, colour in colours(theme).items())


def darkened(spec: Spec) -> Spec:
    """The same chart in the dark theme: each colour of the light one is replaced by its partner.

    >>> darkened({"mark": {"color": "#0B62B8"}})
    {'mark': {'color': '#6CB4FF'}}
    """
    partner: dict[str, str] = {}
    for light, dark in TOKENS.values():
        partner.setdefault(light.lower(), dark)  # white is first of all the background
    recoloured: Spec = _recoloured(spec, partner)
    return recoloured


def _recoloured(item: Any, partner: dict[str, str]) -> Any:
    if isinstance(item, dict):
        return {key: _recoloured(value, partner) for key, value in item.items()}
    if isinstance(item, (list, tuple)):
        return [_recoloured(value, partner) for value in item]
    return partner.get(item.lower(), item) if isinstance(item, str) else item
