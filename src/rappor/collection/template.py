"""A new collection as commented TOML: every field is there, with one line on what it is for."""

from __future__ import annotations

import datetime
from dataclasses import fields
from typing import Any

from rappor.collection.definition import Collection
from rappor.collection.periods import periods_between
from rappor.errors import ParamsError
from rappor.mechanism import Ranges
from rappor.mechanism.kinds import check_kind
from rappor.params import Params
from rappor.privacy import SMALL_COHORT, spend
from rappor.typing import Kind

NOISE = (0.5, 0.5, 0.75)  # f, p, q: the paper's
_YEAR = datetime.timedelta(days=365)

ABOUT: dict[str, str] = {
    "name": "what clients and files call it; it never changes",
    "version": "any change of what clients send or were promised needs the next one",
    "params": "k bits, h hashes, m cohorts, and the noise f, p, q; or preset, or plan = a file",
    "kind": "string, category, boolean, ordinal or bits",
    "description": "what is collected and what for, in words for the person who reports it",
    "owner": "who answers for it",
    "sensitivity": "low, medium or high; high needs a review",
    "reviews": "where its reviews can be read",
    "expires": "the first day on which nothing is accepted any more and all is deleted",
    "platform": "device, or web, where storage may be cleared and the secret with it",
    "dialect": "how strings are placed onto bits",
    "categories": "the values of kind category, one bit each, in this order for ever",
    "ranges": "of kind ordinal: the edges between ranges, or magnitudes = {base, low, high}",
    "period": "day or week (UTC): the only time that a report carries",
    "dimensions": "sent in clear, outside ε; values that are not listed are sent as other",
    "keep_reports_days": "how long single reports are kept; 0: counts only",
    "reports_per_period": "the most that a client sends in a period",
    "max_values": "the most distinct values that a client ever reports",
    "max_epsilon": "the most ε that a client ever spends here",
    "group": "collections about the same thing share a group name, and their ε is added up",
    "null_reports": "true: a client without a value says so, and silence says nothing",
    "one_time": "true: one report from a client, ever",
    "budget": "true: every period has its own B' and costs its own ε",
    "schedule": "p and q from a period on, the same for every client",
    "expected_reports": "in a period, from all clients: small cells are found by it",
    "values": "fixed, slow or fast: how often a client's value changes",
    "shared": "true: most clients may hold the same value",
    "clients_per_person": "devices or accounts that one person may report from",
    "account_secret": "true: the clients of a person share one secret",
    "upload": "where reports are sent to, https only",
}


def draft(
    name: str,
    *,
    kind: Kind = "string",
    params: Params | None = None,
    today: datetime.date | None = None,
    **given: Any,
) -> Collection:
    """A collection with defaults that lint finds nothing wrong with.

    It ends after a year and expects enough reports for its cells; params default to the paper's
    noise on as many bits as the kind needs, with q lowered until a budget lasts to the end (R32c).

    >>> draft("theme", kind="category", categories=("light", "dark"), owner="web team").params
    Params(k=2, h=1, m=1, f=0.5, p=0.5, q=0.75)
    """
    day = today or datetime.datetime.now(datetime.UTC).date()
    check_kind(kind)
    made: dict[str, Any] = {
        "description": f"Each client's {name}, randomized before it leaves the client.",
        "expires": day + _YEAR,
        **{key: value for key, value in given.items() if value is not None},
    }
    if params is None:
        params = default_params(kind, made.get("categories"), made.get("ranges"))
        if made.get("budget") and made.get("max_epsilon") and not made.get("schedule"):
            last = made["expires"] - datetime.timedelta(days=1)
            periods = periods_between(made.get("period", "day"), day, last)
            params = spend(made["max_epsilon"], max(periods, 1), params, kind).periods[0]
    collection = Collection(name=name, version=1, kind=kind, params=params, **made)
    if collection.expected_reports is None:
        made["expected_reports"] = SMALL_COHORT * params.m * collection.cells
        collection = Collection(name=name, version=1, kind=kind, params=params, **made)
    return collection


def default_params(kind: Kind, categories: Any, ranges: Ranges | None) -> Params:
    """The paper's noise on the bits that a kind needs; for strings the windows preset."""
    match kind:
        case "string":
            return Params.preset("windows")
        case "boolean":
            return Params(1, 1, 1, *NOISE)
        case "category":
            return Params(max(len(categories or ()), 1), 1, 1, *NOISE)
        case "ordinal":
            return Params(ranges.count if isinstance(ranges, Ranges) else 1, 1, 1, *NOISE)
        case _:
            raise ParamsError("kind 'bits' needs params: how many bits there are cannot be guessed")


def commented(collection: Collection) -> str:
    """The TOML of a collection with a comment for each field; reads back as an equal one."""
    lines = [f"# {collection.name}: a RAPPOR collection. Check it with: rappor collection lint"]
    tables = False
    for line in collection.to_toml().rstrip("\n").split("\n"):  # splitlines knows too many ends
        if line.startswith("["):
            tables = True
            lines.append(f"# {ABOUT[line.strip('[]')]}")
        elif line and not tables:
            lines += ["", f"# {ABOUT[line.partition(' ')[0]]}"]
        lines.append(line)
    absent = [
        name
        for name in (field.name for field in fields(Collection))
        if getattr(collection, name) in (None, (), {}) and name != "reviews"
    ]
    lines += ["", "# Not used here (docs/collections.md):"]
    lines += [f"#   {name}: {ABOUT[name]}" for name in absent]
    return "\n".join(lines) + "\n"
