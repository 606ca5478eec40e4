"""Collections as lines for people and facts for JSON: the page, findings and differences."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from rappor.cli.output import table
from rappor.collection import Collection, DefinitionDifference, LintFinding
from rappor.collection.summary import Summary, summary
from rappor.mechanism import KINDS
from rappor.privacy.rounding import up

WIDTH = 96


def plain(number: int, noun: str) -> str:
    """A count with its noun."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def facts_of(collection: Collection) -> dict[str, Any]:
    """A collection as JSON: its fields, and what they mean in numbers."""
    found: dict[str, Any] = {}
    for name in collection.__slots__:
        value = getattr(collection, name)
        found[name] = str(value) if name == "expires" and value is not None else value
    found["params"] = collection.params.to_dict()
    if collection.ranges is not None:
        found["ranges"] = {
            "edges": [str(edge) for edge in collection.ranges.edges],
            "labels": list(collection.ranges.labels),
        }
    found["dimensions"] = {name: list(each) for name, each in collection.dimensions.items()}
    found["schedule"] = [{"from": first, "p": p, "q": q} for first, p, q in collection.schedule]
    found["memo_digest"] = collection.memo_digest
    found["params_digest"] = collection.params.digest
    found["summary"] = asdict(summary(collection))
    return found


def page(collection: Collection) -> list[str]:
    """What is collected, what leaves the client, what is kept, and ε, in words."""
    told = summary(collection)
    lines = [f"{collection.name}, version {collection.version}"]
    lines += _wrapped(collection.description or "(no description)", "")
    lines += ["", "What is collected"]
    lines += _wrapped(_kind_sentence(collection))
    lines += _wrapped(_who_sentence(collection))
    lines += ["", "What leaves the client"]
    for text in _leaving(collection, told):
        lines += _wrapped(text)
    lines += ["", "What is kept"]
    lines += _wrapped(_kept(collection))
    lines += ["", "Privacy loss ε of one client, rounded up"]
    lines += [f"  {line}" for line in table(_epsilon_rows(collection, told))]
    lines += ["", *_wrapped(_epsilon_note(collection), "")]
    return lines


def _kind_sentence(collection: Collection) -> str:
    params = collection.params
    text = f"Kind {collection.kind}: {KINDS[collection.kind]}."
    if collection.categories is not None:
        listed = ", ".join(collection.categories[:8])
        more = ", ..." if len(collection.categories) > 8 else ""
        text += f" {len(collection.categories)} categories: {listed}{more}."
    if collection.ranges is not None:
        text += f" {collection.ranges.count} ranges: {'; '.join(collection.ranges.labels[:8])}."
    numbers = ", ".join(f"{name}={value}" for name, value in params.to_dict().items())
    return f"{text} {numbers}; dialect {collection.dialect}."


def _who_sentence(collection: Collection) -> str:
    reviews = ", ".join(collection.reviews) or "none named"
    ends = f"ends on {collection.expires}" if collection.expires else "has no end"
    return (
        f"Owner: {collection.owner or 'nobody'}. Sensitivity: {collection.sensitivity}. "
        f"Reviews: {reviews}. It {ends}."
    )


def _leaving(collection: Collection, told: Summary) -> list[str]:
    params = collection.params
    often = f"at most {plain(collection.reports_per_period, 'report')} a {collection.period}"
    if collection.one_time:
        often = "one report, ever"
    found = [
        f"{plain(params.k, 'randomized bit')} ({plain(told.bytes_per_report, 'byte')}) and the "
        f"client's cohort, one of {params.m}; {often}.",
        f"The names of the collection, its version and the {collection.period} (UTC).",
    ]
    if collection.dimensions:
        declared = "; ".join(
            f"{name} ({', '.join(values)} or other)"
            for name, values in sorted(collection.dimensions.items())
        )
        found.append(f"In clear, outside ε: {declared}.")
    if collection.null_reports:
        found.append("A client without a value reports that, so that silence says nothing.")
    found.append("Never the value, its filter, the secret, an id, an address or a time of day.")
    return found


def _kept(collection: Collection) -> str:
    text = f"Counts for each {collection.period}, cell and cohort."
    if collection.keep_reports_days:
        text += f" Single reports for {plain(collection.keep_reports_days, 'day')}."
    else:
        text += " No single reports."
    if collection.expires:
        return f"{text} All of it is deleted on {collection.expires}."
    return f"{text} There is no day on which it is deleted."


def _epsilon_rows(collection: Collection, told: Summary) -> list[tuple[str, str]]:
    ever = "one unchanged value, for ever"
    if collection.budget:
        ever = f"a report in every {collection.period}, without end"
    return [
        ("one report", up(told.epsilon_report)),
        (f"all reports of one {collection.period}, one value", up(told.epsilon_period)),
        (ever, up(told.epsilon_value)),
        ("everything, for ever: the client stops here", up(told.epsilon_cap)),
    ]


def _epsilon_note(collection: Collection) -> str:
    if collection.one_time:
        return "ε is between any two values; the client reports once and never again."
    if collection.budget:
        return "ε is between any two sequences of values; each period spends its own share."
    text = "ε is between any two values. "
    if collection.group:
        text += (
            f"Collections of group {collection.group} are about the same thing: theirs adds up. "
        )
    return text + "That and when a value changes is not hidden by it (R30)."


def finding_lines(findings: Iterable[LintFinding]) -> list[str]:
    """Findings, each with its way out."""
    lines: list[str] = []
    for each in findings:
        code = f"{each.code} ({each.source})" if each.source else each.code
        lines += _wrapped(f"{each.severity}: {each.collection}: {code}: {each.text}", "")
        lines += _wrapped(f"way out: {each.way_out}")
    return lines


def difference_lines(found: DefinitionDifference) -> list[str]:
    """A difference: verdict, changes, cost."""
    lines = []
    for each in found.changes:
        lines += _wrapped(f"{each.field}: {each.needs}: {each.why}", "")
        lines += _wrapped(f"{_brief(each.before)} → {_brief(each.after)}")
    if not found.changes:
        lines.append("nothing changed but the version, if that")
    lines += _wrapped(f"cost: {found.cost}", "")
    if any(each.needs == "review" for each in found.changes):
        lines.append("review: someone should agree before this is used")
    lines += _wrapped("allowed" if found.allowed else f"refused: {found.refusal}", "")
    return lines


def _brief(value: Any) -> str:
    text = str(value) if value not in (None, "", (), {}) else "(none)"
    return text if len(text) <= 200 else text[:197] + "..."


def _wrapped(text: str, indent: str = "  ") -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=indent, subsequent_indent=indent or "  ", break_long_words=False
    )
