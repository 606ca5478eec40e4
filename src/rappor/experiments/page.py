"""Pages: published number, our number and the verdict side by side, with figures and tables.

Every word from an outcome is escaped; a page refers to nothing but files beside it.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from numbers import Integral, Real
from typing import Any

from rappor.experiments.experiment import Figure, Table
from rappor.experiments.style import whole_page
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
    verdicts = [each["verdict"] for item in items.values() for each in item["comparisons"]]
    failed = sum(item["failed"] is not None for item in items.values())
    extra = verdicts.count("extra")
    total = (
        f"{len(verdicts) - extra} published figures and statements were set beside ours: "
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
            _verdicts(item),
            "</section>",
        ]
    parts.append("</main>")
    return whole_page("The paper, reproduced", parts, _FOOTER)


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
    for each in item["comparisons"]:
        verdict = str(each["verdict"])
        word = f'<span class="verdict {escape(verdict)}">{_MARK.get(verdict, "")} {escape(verdict)}'
        rows.append(
            f'<tr><th scope="row">{escape(each["what"])}</th>'
            f'<td data-label="Published">{escape(each["published"])}</td>'
            f'<td data-label="Ours">{escape(each["ours"])}</td>'
            f"<td>{word}</span></td><td>{escape(each['why'])}</td></tr>"
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
    align = [' class="number"' if each else "" for each in numeric]
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
    """A cell of a table as a person reads it.

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
