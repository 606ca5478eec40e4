"""What the commands say about a definition: its page, its facts, its findings."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from rappor.cli.output import table
from rappor.collection import Collection, LintFinding
from rappor.collection.summary import Summary, summary
from rappor.mechanism import KINDS, Field
from rappor.privacy.rounding import up

WIDTH = 96


def facts_of(collection: Collection) -> dict[str, Any]:
    """A collection as JSON: its fields, and the numbers that follow from them."""
    facts: dict[str, Any] = {}
    for name in collection.__slots__:
        value = getattr(collection, name)
        facts[name] = str(value) if name == "expires" and value is not None else value
    facts["params"] = collection.params.to_dict()
    facts |= _range_facts(collection)
    if (views := collection.tuple_views) is not None:
        facts["fields"] = [
            {"name": field.name, "kind": field.kind, "categories": field.categories}
            | _range_facts(field)
            for field in views.fields
        ]
        cohorts = views.cohorts(collection.params.m)
        facts["views"] = [
            {"fields": view.fields, "share": view.share, "cohorts": number}
            for view, number in zip(views.views, cohorts, strict=True)
        ]
    facts["dimensions"] = {name: list(values) for name, values in collection.dimensions.items()}
    facts["schedule"] = [{"from": first, "p": p, "q": q} for first, p, q in collection.schedule]
    facts["memo_digest"] = collection.memo_digest
    facts["params_digest"] = collection.params.digest
    facts["summary"] = asdict(summary(collection))
    return facts


def _range_facts(shape: Collection | Field) -> dict[str, Any]:
    if shape.ranges is None:
        return {"ranges": None}
    edges = [str(edge) for edge in shape.ranges.edges]
    return {"ranges": {"edges": edges, "labels": list(shape.ranges.labels)}}


def page(collection: Collection) -> list[str]:
    """What is collected, what leaves the client, what is kept, and ε, as text."""
    figures = summary(collection)
    lines = [f"{collection.name}, version {collection.version}"]
    lines += wrapped(collection.description or "(no description)", "")
    lines += ["", "What is collected"]
    lines += wrapped(_kind_sentence(collection))
    lines += wrapped(_who_sentence(collection))
    lines += ["", "What leaves the client"]
    for text in _leaving(collection, figures):
        lines += wrapped(text)
    lines += ["", "What is kept"]
    lines += wrapped(_kept(collection))
    lines += ["", "Privacy loss ε of one client, rounded up"]
    lines += [f"  {line}" for line in table(epsilon_rows(collection, figures))]
    lines += ["", *wrapped(_epsilon_note(collection), "")]
    return lines


def _kind_sentence(collection: Collection) -> str:
    params = collection.params
    text = f"Kind {collection.kind}: {KINDS[collection.kind]}."
    if collection.categories is not None or collection.ranges is not None:
        text += f" {_listed(collection)}."
    for field in collection.fields or ():
        listed = f" ({_listed(field)})" if field.kind in ("category", "ordinal") else ""
        text += f" Field {field.name}: {field.kind}{listed}."
    if (views := collection.tuple_views) is not None:
        numbers = views.cohorts(params.m)
        shown = (
            f"{' with '.join(view.fields)} in {number}"
            for view, number in zip(views.views, numbers, strict=True)
        )
        text += f" Views by cohorts: {'; '.join(shown)}."
    six = ", ".join(f"{name}={value}" for name, value in params.to_dict().items())
    return f"{text} {six}; dialect {collection.dialect}."


def _listed(shape: Collection | Field) -> str:
    """The categories or ranges of a collection or of a field."""
    if shape.categories is not None:
        listed = ", ".join(shape.categories[:8])
        more = ", ..." if len(shape.categories) > 8 else ""
        return f"{len(shape.categories)} categories: {listed}{more}"
    if shape.ranges is not None:
        return f"{shape.ranges.count} ranges: {'; '.join(shape.ranges.labels[:8])}"
    return ""


def _who_sentence(collection: Collection) -> str:
    reviews = ", ".join(collection.reviews) or "none named"
    ends = f"ends on {collection.expires}" if collection.expires else "has no end"
    return (
        f"Owner: {collection.owner or 'nobody'}. Sensitivity: {collection.sensitivity}. "
        f"Reviews: {reviews}. It {ends}."
    )


def _leaving(collection: Collection, figures: Summary) -> list[str]:
    params = collection.params
    often = f"at most {plain(collection.reports_per_period, 'report')} a {collection.period}"
    if collection.one_time:
        often = "one report in total"
    sentences = [
        f"{plain(params.k, 'randomized bit')} ({plain(figures.bytes_per_report, 'byte')}) and the "
        f"client's cohort, one of {params.m}; {often}.",
        f"The name of the collection, its version and the {collection.period} (UTC).",
    ]
    if collection.dimensions:
        declared = "; ".join(
            f"{name} ({', '.join(values)} or other)"
            for name, values in sorted(collection.dimensions.items())
        )
        sentences.append(f"In clear, outside ε: {declared}.")
    if collection.null_reports:
        sentences.append(
            "A client without a value sends a null report, so that silence tells nothing."
        )
    sentences.append("Never the value, its filter, the secret, an id, an address or a time of day.")
    return sentences


def _kept(collection: Collection) -> str:
    text = f"Counts for each {collection.period}, cell and cohort."
    if collection.keep_reports_days:
        text += f" Single reports for {plain(collection.keep_reports_days, 'day')}."
    else:
        text += " No single reports."
    if collection.expires:
        if collection.on_expiry == "keep-counts":
            return f"{text} Single reports are deleted on {collection.expires}; counts stay."
        return f"{text} Everything is deleted on {collection.expires}."
    return f"{text} No date of deletion is set."


def epsilon_rows(collection: Collection, figures: Summary) -> list[tuple[str, str]]:
    """What one client spends: on a report, in a period, on a value, in all."""
    ever = "all reports on one unchanged value"
    if collection.budget:
        ever = f"a report in every {collection.period}, without limit"
    return [
        ("one report", up(figures.epsilon_report)),
        (f"all reports of one {collection.period}, one value", up(figures.epsilon_period)),
        (ever, up(figures.epsilon_value)),
        ("all reports together: the client stops here", up(figures.epsilon_cap)),
    ]


def _epsilon_note(collection: Collection) -> str:
    if collection.one_time:
        return "ε compares any two values; the client reports once and never again."
    if collection.budget:
        return "ε compares any two sequences of values; each period spends its own share."
    text = "ε compares any two values. "
    if collection.group:
        text += f"Collections of group {collection.group} share a subject: their ε adds up. "
    return text + "It does not hide that a value changes, or when."


def finding_lines(findings: Iterable[LintFinding]) -> list[str]:
    """Findings, each with a way to fix it."""
    lines: list[str] = []
    for finding in findings:
        code = f"{finding.code} ({finding.source})" if finding.source else finding.code
        lines += wrapped(f"{finding.severity}: {finding.collection}: {code}: {finding.text}", "")
        lines += wrapped(f"fix: {finding.way_out}")
    return lines


def plain(number: int, noun: str) -> str:
    """A count with its noun."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def wrapped(text: str, indent: str = "  ") -> list[str]:
    """A sentence as lines that fit a terminal."""
    return textwrap.wrap(
        text, WIDTH, initial_indent=indent, subsequent_indent=indent or "  ", break_long_words=False
    )
