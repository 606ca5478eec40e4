"""A new collection as commented TOML: every field, with one line on its purpose."""

from __future__ import annotations

import datetime
from dataclasses import fields
from typing import Any

from rappor.collection.definition import Collection
from rappor.collection.periods import periods_between
from rappor.collection.toml import LEFT_OUT
from rappor.errors import ParamsError
from rappor.mechanism import Ranges
from rappor.mechanism.kinds import check_kind
from rappor.params import Params
from rappor.privacy import SMALL_COHORT, spend
from rappor.typing import Kind

NOISE = (0.5, 0.5, 0.75)  # f, p, q: the paper's
_YEAR = datetime.timedelta(days=365)

ABOUT: dict[str, str] = {
    "name": "its name in clients and files; it never changes",
    "version": "needs the next number when what clients send or were promised changes",
    "params": "k bits, h hashes, m cohorts, and the noise f, p, q; or preset, or plan = a file",
    "kind": "string, category, boolean, ordinal, bits or tuple",
    "description": "what is collected and what for, in words for the person who reports it",
    "owner": "who is responsible for it",
    "sensitivity": "low, medium or high; high needs a review",
    "reviews": "where its reviews can be read",
    "expires": "the first day on which no report is accepted",
    "on_expiry": "what happens to its data on that day: delete (default) or keep-counts",
    "platform": "device; or web, where storage (and the secret) may be cleared",
    "dialect": "how strings and tuples are placed onto bits",
    "categories": "the values of kind category, one bit each; their order never changes",
    "ranges": "of kind ordinal: the edges between ranges, or magnitudes = {base, low, high}",
    "fields": "of kind tuple: two to four, each with name and kind, and categories or ranges",
    "views": "of kind tuple: which fields a cohort reports together, and the share of cohorts",
    "period": "day or week (UTC): the only time that a report carries",
    "dimensions": "sent in clear, not covered by ε; unlisted values are sent as other",
    "keep_reports_days": "how long single reports are kept; 0 keeps counts only",
    "reports_per_period": "how many reports a client may send in a period",
    "max_values": "how many distinct values a client may report in all; then it falls silent",
    "max_epsilon": "the largest ε that a client may spend here",
    "group": "collections about the same thing share a group name, and their ε is added up",
    "null_reports": "true: a client without a value sends a null report; silence reveals nothing",
    "one_time": "true: a client reports once, and never again",
    "budget": "true: every period has its own B' and costs its own ε",
    "schedule": "p and q from a period on, the same for every client",
    "expected_reports": "reports of all clients in a period; lint finds small cells by it",
    "values": "fixed, slow or fast: how a client's value changes; slow needs max_values above 1",
    "shared": "true: most clients may hold the same value",
    "clients_per_person": "devices or accounts that one person may report from",
    "account_secret": "true: the clients of a person share one secret",
    "upload": "the address that reports are sent to, https only",
}


def draft(
    name: str,
    *,
    kind: Kind = "string",
    params: Params | None = None,
    today: datetime.date | None = None,
    **given: Any,
) -> Collection:
    """A collection with defaults that lint accepts.

    It ends after a year and expects enough reports for its cells. The default params have the noise
    of the paper and the bits that the kind needs; in budget mode, q is lowered until the budget
    lasts to the end.

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
    """The paper's noise on the bits that a kind needs; for hashed kinds the windows preset."""
    match kind:
        case "string" | "tuple":
            return Params.preset("windows")
        case "boolean":
            return Params(1, 1, 1, *NOISE)
        case "category":
            return Params(max(len(categories or ()), 1), 1, 1, *NOISE)
        case "ordinal":
            return Params(ranges.count if isinstance(ranges, Ranges) else 1, 1, 1, *NOISE)
        case _:
            raise ParamsError("kind 'bits' needs params: the number of bits cannot be guessed")


def commented(collection: Collection) -> str:
    """The TOML of a collection with a comment for each field; it reads back as an equal one."""
    lines = [f"# {collection.name}: a RAPPOR collection. Check it with: rappor collection lint"]
    tables = False
    for line in collection.to_toml().rstrip("\n").split("\n"):  # splitlines splits elsewhere too
        if line.startswith("["):
            tables = True
            comment = f"# {ABOUT[line.strip('[]')]}"
            lines += [] if comment in lines else [comment]
        elif line and not tables:
            lines += ["", f"# {ABOUT[line.partition(' ')[0]]}"]
        lines.append(line)
    absent = [
        name
        for name in (field.name for field in fields(Collection))
        if getattr(collection, name) in (None, (), {}, LEFT_OUT.get(name)) and name != "reviews"
    ]
    lines += ["", "# Not used here (docs/collections.md):"]
    lines += [f"#   {name}: {ABOUT[name]}" for name in absent]
    return "\n".join(lines) + "\n"
