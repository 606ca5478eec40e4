"""Writes tests/vectors/client-definitions.json: what every client accepts, and what it refuses.

Add a case here, run this file, and commit both. An accepted case never changes: clients of other
languages run the same file.
"""

import copy
import json
from pathlib import Path
from typing import Any

from rappor.collection import Collection

TARGET = Path(__file__).parent.parent / "vectors" / "client-definitions.json"
Definition = dict[str, Any]
GONE = object()

STRING: Definition = {
    "format": "rappor-collection-v1",
    "name": "homepage",
    "version": 1,
    "kind": "string",
    "params": {"k": 128, "h": 2, "m": 8, "f": 0.5, "p": 0.5, "q": 0.75},
    "description": "Which page a browser starts with.",
    "dialect": "rappor-v1",
    "period": "day",
    "dimensions": {},
    "reports_per_period": 1,
    "max_values": 3,
    "max_epsilon": 13.184,
    "null_reports": False,
    "one_time": False,
    "budget": False,
    "schedule": [],
    "clients_per_person": 1,
}
THREE = {"k": 3, "h": 1, "m": 1, "f": 0.5, "p": 0.5, "q": 0.75}


def changed(base: Definition, **changes: Any) -> Definition:
    """A definition with other fields; `params__k` is k of params, GONE removes a field."""
    made = copy.deepcopy(base)
    for name, value in changes.items():
        *tables, last = name.split("__")
        table = made
        for key in tables:
            table = table[key]
        if value is GONE:
            del table[last]
        else:
            table[last] = value
    return made


def starting(first: Any, p: float = 0.5, q: float = 0.7) -> dict[str, Any]:
    """A phase of a schedule."""
    return {"from": first, "p": p, "q": q}


CATEGORY = changed(
    STRING, name="theme", kind="category", params=THREE, categories=["light", "dark", "system"]
)
ORDINAL = changed(
    STRING, name="age", kind="ordinal", params=THREE, ranges={"edges": ["-1/2", "18"]}
)
FIELDS: list[Definition] = [
    {"name": "homepage", "kind": "string"},
    {"name": "channel", "kind": "category", "categories": ["stable", "beta"]},
    {"name": "active", "kind": "boolean"},
    {"name": "age", "kind": "ordinal", "ranges": {"edges": ["-1/2", "18"]}},
]
VIEWS: list[Definition] = [
    {"fields": ["homepage", "channel"], "cohorts": 5},
    {"fields": ["age", "active"], "cohorts": 1},
    {"fields": ["homepage"], "cohorts": 2},
]
TUPLE = changed(STRING, name="install", kind="tuple", fields=FIELDS, views=VIEWS)


def field(number: int, **changes: Any) -> Definition:
    """The tuple with another field."""
    made = [changed(one, **changes) if at == number else one for at, one in enumerate(FIELDS)]
    return changed(TUPLE, fields=made)


def view(number: int, **changes: Any) -> Definition:
    """The tuple with another view."""
    made = [changed(one, **changes) if at == number else one for at, one in enumerate(VIEWS)]
    return changed(TUPLE, views=made)


ONCE = changed(STRING, one_time=True, max_values=1, params__f=0.0)
PHASES = [starting("2026-12-01"), starting("2027-01-01", q=0.65)]
EIGHT = {f"d{number}": ["a"] for number in range(8)}

ACCEPTED: list[tuple[str, Definition]] = [
    ("a string", STRING),
    ("categories that are not ASCII", changed(CATEGORY, categories=["é", "日本語", "🎉"])),
    ("an empty category, and a control character", changed(CATEGORY, categories=["", "\t"])),
    ("spare bits", changed(CATEGORY, params__k=9)),
    ("a boolean", changed(STRING, kind="boolean", params=changed(THREE, k=1))),
    ("numbers in ranges", ORDINAL),
    ("an edge that is not in lowest terms", changed(ORDINAL, ranges={"edges": ["2/4", "36/2"]})),
    (
        "edges that no double holds",
        changed(ORDINAL, params__k=4, ranges={"edges": ["-1/3", "1/7", "9007199254740993"]}),
    ),
    ("the largest edge", changed(ORDINAL, params__k=2, ranges={"edges": [str(2**1024 - 1)]})),
    ("free bits", changed(STRING, kind="bits", params=changed(THREE, k=12, h=1, m=2))),
    ("probabilities that are no short binary fractions", changed(
        STRING, params__f=0.1, params__p=0.30000000000000004, params__q=0.9999999999999999)),
    ("very small probabilities", changed(STRING, params__f=1e-9, params__p=5e-324)),
    ("probabilities at the ends", changed(STRING, params__p=0, params__q=1)),
    ("the largest of everything", changed(
        STRING, name="a" + "b" * 62, version=65535,
        params={"k": 4096, "h": 16, "m": 1024, "f": 0.5, "p": 0.5, "q": 0.75},
        reports_per_period=10_000, max_values=1_000_000, max_epsilon=1e308,
        clients_per_person=10_000, group="z" * 63, dimensions=EIGHT)),
    ("a small limit on ε", changed(STRING, max_epsilon=1e-7)),
    ("dimensions", changed(
        STRING, dimensions={"os": ["Linux", "Mac OS (11.1)"], "country": ["NZ", "AU"]})),
    ("the most values of a dimension", changed(
        STRING, dimensions={"n": [str(number) for number in range(256)]})),
    ("a group, null reports and an end", changed(
        STRING, group="browsing", null_reports=True, expires="2028-02-29")),
    ("one-time, one randomization", ONCE),
    ("one-time, the permanent response alone", changed(
        STRING, one_time=True, max_values=1, params__p=0, params__q=1)),
    ("a budget by weeks", changed(STRING, budget=True, period="week")),
    ("a schedule of days", changed(STRING, schedule=PHASES)),
    ("a schedule of weeks, over the end of a year of 53", changed(
        STRING, period="week", schedule=[starting("2026-W53")])),
    ("a description with every escape", changed(
        STRING, description='line\nand\ttab "quoted" \\ / \u2028 é 🎉')),
    ("an empty description", changed(STRING, description="")),
    ("a description of fewer than 4096 characters, and of more UTF-16 units",
     changed(STRING, description="🎉" * 2100)),
    ("a tuple", TUPLE),
    ("a tuple of two booleans in one view, the second first", changed(
        TUPLE, fields=[{"name": "a", "kind": "boolean"}, {"name": "b_2", "kind": "boolean"}],
        views=[{"fields": ["b_2", "a"], "cohorts": 8}])),
    ("a tuple with the longest name of a field, and an edge that is not in lowest terms", changed(
        TUPLE, fields=[{"name": "a" + "0" * 31, "kind": "string"},
                       {"name": "n", "kind": "ordinal", "ranges": {"edges": ["2/4"]}}],
        views=[{"fields": ["a" + "0" * 31, "n"], "cohorts": 1}, {"fields": ["n"], "cohorts": 7}])),
]  # fmt: skip

OTHER_DIALECTS: list[tuple[str, Definition]] = [
    (dialect, changed(STRING, dialect=dialect)) for dialect in ("google", "google-java", "chromium")
]

WRITTEN_OTHERWISE: list[tuple[str, str]] = [
    ("white space and another order", json.dumps(dict(reversed(STRING.items())), indent=2)),
    ("whole numbers with a point or an exponent", json.dumps(STRING)
     .replace('"k": 128', '"k": 1.28e2').replace('"version": 1', '"version": 1.0')),
    ("a probability with more digits than a double holds", json.dumps(STRING)
     .replace('"q": 0.75', '"q": 0.75000000000000000000000001')),
    ("escapes", json.dumps(STRING).replace("homepage", "home\\u0070age")),
    ("minus zero", json.dumps(changed(STRING, params__p=0)).replace('"p": 0', '"p": -0.0')),
]  # fmt: skip

TEXTS: list[tuple[str, str, str]] = [
    ("nothing", "invalid-json", ""),
    ("half a document", "invalid-json", json.dumps(STRING)[:-1]),
    ("two documents", "invalid-json", json.dumps(STRING) * 2),
    ("a comma too many", "invalid-json", json.dumps(STRING)[:-1] + ",}"),
    ("a comment", "invalid-json", json.dumps(STRING) + " // the end"),
    ("not a number", "invalid-json", json.dumps(STRING).replace("0.75", "NaN")),
    ("infinity", "invalid-json", json.dumps(STRING).replace("13.184", "Infinity")),
    ("a line break inside a text", "invalid-json", json.dumps(STRING).replace("browser", "\n")),
    ("TOML", "invalid-json", 'name = "homepage"\nversion = 1\n'),
]
REPEATED: list[tuple[str, str, str]] = [
    ("a repeated key", "invalid-json", json.dumps(STRING)[:-1] + ', "version": 1}'),
    ("a repeated key in a table", "invalid-json",
     json.dumps(STRING).replace('"k": 128', '"k": 128, "k": 64')),
    ("a repeated key, once with an escape", "invalid-json",
     json.dumps(STRING)[:-1] + ', "\\u0076ersion": 1}'),
]  # fmt: skip

CONTRADICTION = "contradiction"
RANGE = "out-of-range"
TYPE = "wrong-type"
Refusal = tuple[str, str, Any]  # code, path, the document

REFUSED: list[Refusal] = [
    (TYPE, "", [STRING]),
    (TYPE, "", None),
    (TYPE, "", "rappor-collection-v1"),
    ("unknown-format", "format", {}),
    ("unknown-format", "format", changed(STRING, format=GONE)),
    ("unknown-format", "format", changed(STRING, format="rappor-collection-v2")),
    ("unknown-format", "format", changed(STRING, format=1)),
    *(("missing-field", name, changed(STRING, **{name: GONE})) for name in STRING
      if name != "format"),
    *(("missing-field", f"params.{name}", changed(STRING, **{f"params__{name}": GONE}))
      for name in THREE),
    ("missing-field", "ranges.edges", changed(ORDINAL, ranges={})),
    ("missing-field", "schedule[1].q", changed(STRING, schedule=[
        PHASES[0], {"from": "2027-01-01", "p": 0.5}])),
    ("unknown-field", "seed", changed(STRING, seed=1)),
    ("unknown-field", "owner", changed(STRING, owner="web-team@example.org")),
    ("unknown-field", "params.e", changed(STRING, params__e=1)),
    ("unknown-field", "ranges.labels", changed(ORDINAL, ranges__labels=[])),
    ("unknown-field", "schedule[0].f", changed(STRING, schedule=[changed(PHASES[0], f=0.5)])),
    *((TYPE, name, changed(STRING, **{name: None})) for name in STRING if name != "format"),
    (TYPE, "version", changed(STRING, version="1")),
    (TYPE, "version", changed(STRING, version=True)),
    (TYPE, "max_epsilon", changed(STRING, max_epsilon=True)),
    (TYPE, "null_reports", changed(STRING, null_reports=0)),
    (TYPE, "one_time", changed(STRING, one_time="false")),
    (TYPE, "params", changed(STRING, params=[128, 2, 8, 0.5, 0.5, 0.75])),
    (TYPE, "params", changed(STRING, params="windows")),
    (TYPE, "params.k", changed(STRING, params__k="128")),
    (TYPE, "params.f", changed(STRING, params__f="1/2")),
    (TYPE, "dimensions", changed(STRING, dimensions=["country"])),
    (TYPE, "dimensions.country", changed(STRING, dimensions={"country": "NZ"})),
    (TYPE, "schedule", changed(STRING, schedule={})),
    (TYPE, "schedule[0]", changed(STRING, schedule=["2026-12-01"])),
    (TYPE, "schedule[0].from", changed(STRING, schedule=[starting(20261201)])),
    (TYPE, "categories", changed(CATEGORY, categories="light")),
    (TYPE, "categories", changed(CATEGORY, categories=None)),
    (TYPE, "ranges", changed(ORDINAL, ranges=["18"])),
    (TYPE, "ranges.edges", changed(ORDINAL, ranges={"edges": "18"})),
    (TYPE, "group", changed(STRING, group=None)),
    (TYPE, "expires", changed(STRING, expires=None)),
    (TYPE, "expires", changed(STRING, expires=20280229)),
    (RANGE, "name", changed(STRING, name="")),
    (RANGE, "name", changed(STRING, name="Homepage")),
    (RANGE, "name", changed(STRING, name="homepage\n")),
    (RANGE, "name", changed(STRING, name="1st")),
    (RANGE, "name", changed(STRING, name="a" * 64)),
    (RANGE, "version", changed(STRING, version=0)),
    (RANGE, "version", changed(STRING, version=65536)),
    (RANGE, "version", changed(STRING, version=1.5)),
    (RANGE, "version", changed(STRING, version=-1)),
    (RANGE, "kind", changed(STRING, kind="text")),
    (RANGE, "dialect", changed(STRING, dialect="rappor-v2")),
    (RANGE, "period", changed(STRING, period="month")),
    (RANGE, "params.k", changed(STRING, params__k=0)),
    (RANGE, "params.k", changed(STRING, params__k=4097)),
    (RANGE, "params.k", changed(STRING, params__k=2**53 + 1)),
    (RANGE, "params.h", changed(STRING, params__h=17)),
    (RANGE, "params.h", changed(STRING, params__h=0.5)),
    (RANGE, "params.m", changed(STRING, params__m=1025)),
    (RANGE, "params.f", changed(STRING, params__f=1)),
    (RANGE, "params.f", changed(STRING, params__f=-0.1)),
    (RANGE, "params.p", changed(STRING, params__p=-5e-324)),
    (RANGE, "params.q", changed(STRING, params__q=1.0000000000000002)),
    (RANGE, "description", changed(STRING, description="x" * 4097)),
    (RANGE, "description", changed(STRING, description="bell \x07")),
    (RANGE, "description", changed(STRING, description="\x7f")),
    (RANGE, "description", changed(STRING, description="half \ud800")),
    (RANGE, "reports_per_period", changed(STRING, reports_per_period=0)),
    (RANGE, "reports_per_period", changed(STRING, reports_per_period=10_001)),
    (RANGE, "max_values", changed(STRING, max_values=0)),
    (RANGE, "max_values", changed(STRING, max_values=1_000_001)),
    (RANGE, "max_epsilon", changed(STRING, max_epsilon=0)),
    (RANGE, "max_epsilon", changed(STRING, max_epsilon=-1)),
    (RANGE, "clients_per_person", changed(STRING, clients_per_person=0)),
    (RANGE, "clients_per_person", changed(STRING, clients_per_person=10_001)),
    (RANGE, "group", changed(STRING, group="Browsing")),
    (RANGE, "group", changed(STRING, group="")),
    (RANGE, "expires", changed(STRING, expires="2027-02-29")),
    (RANGE, "expires", changed(STRING, expires="2027-2-1")),
    (RANGE, "expires", changed(STRING, expires="0000-01-01")),
    (RANGE, "expires", changed(STRING, expires="2027-06-30T00:00:00Z")),
    (RANGE, "categories", changed(CATEGORY, categories=[])),
    (RANGE, "categories", changed(CATEGORY, categories=["light", 2])),
    (RANGE, "categories", changed(CATEGORY, categories=["light", "\udc00"])),
    (RANGE, "ranges.edges", changed(ORDINAL, ranges={"edges": []})),
    (RANGE, "ranges.edges", changed(ORDINAL, ranges={"edges": [18, 65]})),
    (RANGE, "ranges.edges", changed(ORDINAL, ranges={"edges": ["18", "18"]})),
    (RANGE, "ranges.edges", changed(ORDINAL, ranges={"edges": ["65", "18"]})),
    (RANGE, "ranges.edges", changed(ORDINAL, ranges={"edges": ["1/3", "2/6"]})),
    (RANGE, "ranges.edges", changed(ORDINAL, ranges={"edges": ["0.5"]})),
    (RANGE, "ranges.edges", changed(ORDINAL, ranges={"edges": ["1/0"]})),
    (RANGE, "ranges.edges", changed(ORDINAL, ranges={"edges": ["1/-2"]})),
    (RANGE, "ranges.edges", changed(ORDINAL, ranges={"edges": ["018"]})),
    (RANGE, "ranges.edges", changed(ORDINAL, ranges={"edges": [" 18"]})),
    (RANGE, "ranges.edges", changed(ORDINAL, ranges={"edges": ["1_8"]})),
    (RANGE, "ranges.edges", changed(ORDINAL, ranges={"edges": ["٣"]})),
    (RANGE, "ranges.edges", changed(ORDINAL, ranges={"edges": [str(2**1024)]})),
    (RANGE, "dimensions", changed(STRING, dimensions=changed(EIGHT, d8=["a"]))),
    (RANGE, "dimensions.Country", changed(STRING, dimensions={"Country": ["NZ"]})),
    (RANGE, "dimensions.a-b", changed(STRING, dimensions={"a-b": ["NZ"]})),
    (RANGE, "dimensions.country", changed(STRING, dimensions={"country": []})),
    (RANGE, "dimensions.country", changed(STRING, dimensions={"country": ["NZ", "NZ"]})),
    (RANGE, "dimensions.country", changed(STRING, dimensions={"country": ["NZ", 64]})),
    (RANGE, "dimensions.country", changed(STRING, dimensions={"country": ["other"]})),
    (RANGE, "dimensions.country", changed(STRING, dimensions={"country": ["NZ "]})),
    (RANGE, "dimensions.country", changed(STRING, dimensions={"country": ["é"]})),
    (RANGE, "dimensions.country", changed(STRING, dimensions={"country": ["a" * 65]})),
    (RANGE, "dimensions.n", changed(STRING, dimensions={"n": [str(n) for n in range(257)]})),
    (RANGE, "schedule[0].from", changed(STRING, schedule=[starting("2026-W50")])),
    (RANGE, "schedule[0].from", changed(STRING, period="week", schedule=PHASES)),
    (RANGE, "schedule[0].from", changed(STRING, period="week", schedule=[starting("2027-W53")])),
    (RANGE, "schedule[0].from", changed(STRING, schedule=[starting("2026-02-30")])),
    (RANGE, "schedule[1].q", changed(STRING, schedule=[PHASES[0], changed(PHASES[1], q=1.5)])),
    (CONTRADICTION, "params", changed(STRING, params__k=1)),
    (CONTRADICTION, "params", changed(STRING, params__p=0.75)),
    (CONTRADICTION, "params", changed(STRING, params__p=0.8)),
    (CONTRADICTION, "params", changed(STRING, params__f=0, params__p=0)),
    (CONTRADICTION, "params", changed(STRING, params__f=0, params__q=1)),
    (CONTRADICTION, "schedule[0]", changed(STRING, schedule=[starting("2026-12-01", q=0.5)])),
    (CONTRADICTION, "schedule[0]", changed(
        STRING, params__f=0, schedule=[starting("2026-12-01", q=1)])),
    (CONTRADICTION, "schedule[1]", changed(STRING, schedule=list(reversed(PHASES)))),
    (CONTRADICTION, "schedule[1]", changed(STRING, schedule=[PHASES[0], PHASES[0]])),
    (CONTRADICTION, "", changed(STRING, params__k=2)),
    (CONTRADICTION, "", changed(STRING, params__k=1, params__h=1)),
    (CONTRADICTION, "", changed(STRING, categories=["a"])),
    (CONTRADICTION, "", changed(STRING, ranges={"edges": ["18"]})),
    (CONTRADICTION, "", changed(CATEGORY, categories=GONE)),
    (CONTRADICTION, "", changed(CATEGORY, categories=["light", "light"])),
    (CONTRADICTION, "", changed(CATEGORY, params__k=2)),
    (CONTRADICTION, "", changed(CATEGORY, params__h=2)),
    (CONTRADICTION, "", changed(ORDINAL, ranges=GONE)),
    (CONTRADICTION, "", changed(ORDINAL, params__k=2)),
    (CONTRADICTION, "", changed(ORDINAL, categories=["a"])),
    (CONTRADICTION, "", changed(STRING, kind="boolean")),
    (CONTRADICTION, "", changed(STRING, kind="boolean", params=THREE)),
    (CONTRADICTION, "", changed(STRING, dialect="google", params__h=9, params__k=1000)),
    (CONTRADICTION, "", changed(ONCE, params__f=0.5)),
    (CONTRADICTION, "", changed(ONCE, budget=True)),
    (CONTRADICTION, "", changed(ONCE, null_reports=True)),
    (CONTRADICTION, "", changed(ONCE, schedule=PHASES)),
    (CONTRADICTION, "", changed(ONCE, reports_per_period=2)),
    (CONTRADICTION, "", changed(STRING, budget=True, reports_per_period=2)),
    (TYPE, "fields", changed(TUPLE, fields={"homepage": "string"})),
    (TYPE, "fields[1]", changed(TUPLE, fields=[FIELDS[0], "channel"])),
    (TYPE, "fields[0].name", field(0, name=1)),
    (TYPE, "fields[0].kind", field(0, kind=None)),
    (TYPE, "fields[1].categories", field(1, categories="stable")),
    (TYPE, "fields[3].ranges.edges", field(3, ranges={"edges": "18"})),
    (TYPE, "views", changed(TUPLE, views="homepage")),
    (TYPE, "views[0]", changed(TUPLE, views=["homepage"])),
    (TYPE, "views[0].fields", view(0, fields="homepage")),
    (TYPE, "views[0].cohorts", view(0, cohorts="5")),
    ("missing-field", "fields[0].name", field(0, name=GONE)),
    ("missing-field", "views[1].cohorts", view(1, cohorts=GONE)),
    ("unknown-field", "fields[0].share", field(0, share=1)),
    ("unknown-field", "fields[3].ranges.labels", field(3, ranges__labels=[])),
    ("unknown-field", "views[0].share", view(0, share=0.8)),
    (RANGE, "fields", changed(TUPLE, fields=FIELDS[:1])),
    (RANGE, "fields", changed(TUPLE, fields=[*FIELDS, {"name": "e", "kind": "boolean"}])),
    (RANGE, "fields[0].name", field(0, name="Homepage")),
    (RANGE, "fields[0].name", field(0, name="a" * 33)),
    (RANGE, "fields[0].name", field(0, name="a-b")),
    (RANGE, "fields[0].kind", field(0, kind="bits")),
    (RANGE, "fields[0].kind", field(0, kind="tuple")),
    (RANGE, "fields[1].categories", field(1, categories=[])),
    (RANGE, "fields[1].categories", field(1, categories=["stable", 1])),
    (RANGE, "fields[3].ranges.edges", field(3, ranges={"edges": ["18", "18"]})),
    (RANGE, "fields[3].ranges.edges", field(3, ranges={"edges": [18]})),
    (RANGE, "views[0].fields", view(0, fields=["homepage", None])),
    (RANGE, "views[0].fields", view(0, fields=["Homepage"])),
    (RANGE, "views[1].cohorts", view(1, cohorts=0)),
    (RANGE, "views[1].cohorts", view(1, cohorts=0.5)),
    (RANGE, "views[1].cohorts", view(1, cohorts=1025)),
    (CONTRADICTION, "fields[1]", field(1, categories=GONE)),
    (CONTRADICTION, "fields[0]", field(0, categories=["a"])),
    (CONTRADICTION, "fields[1]", field(1, categories=["beta", "beta"])),
    (CONTRADICTION, "fields[3]", field(3, ranges=GONE)),
    (CONTRADICTION, "fields[2]", field(2, ranges={"edges": ["1"]})),
    (CONTRADICTION, "views[2]", view(2, fields=[])),
    (CONTRADICTION, "views[0]", view(0, fields=["homepage", "homepage"])),
    (CONTRADICTION, "", field(2, name="homepage")),
    (CONTRADICTION, "", view(2, fields=["homepages"])),
    (CONTRADICTION, "", view(2, fields=["channel", "homepage"])),
    (CONTRADICTION, "", view(1, fields=["age"])),
    (CONTRADICTION, "", view(0, cohorts=4)),
    (CONTRADICTION, "", view(0, cohorts=6)),
    (CONTRADICTION, "", changed(TUPLE, views=[])),
    (CONTRADICTION, "", changed(TUPLE, views=GONE)),
    (CONTRADICTION, "", changed(TUPLE, fields=GONE)),
    (CONTRADICTION, "", changed(TUPLE, fields=GONE, views=GONE)),
    (CONTRADICTION, "", changed(TUPLE, kind="string")),
    (CONTRADICTION, "", changed(TUPLE, categories=["a"])),
    (CONTRADICTION, "", changed(TUPLE, params__h=2, params__k=2)),
]  # fmt: skip


def accepted(about: str, text: str) -> dict[str, str]:
    """A case that every client accepts, with what follows from it."""
    collection = Collection.from_client_json(text)
    return {
        "about": about,
        "text": text,
        "canonical": collection.to_client_json(),
        "memo_digest": collection.memo_digest,
    }


def main() -> None:
    """Write the file."""
    too_large = json.dumps(STRING).replace("13.184", "1e400")
    too_long = json.dumps(STRING).replace("128", "1" + "0" * 5000)
    document = {
        "about": "Definitions of collections for clients (docs/clients.md). Each case has one "
        "fault, or none. Readers of parsed objects leave out `repeated`: they cannot see it. "
        "Clients without a dialect refuse `other_dialects` as unsupported.",
        "accepted": [
            accepted(about, text)
            for about, text in (
                *((about, json.dumps(made, ensure_ascii=False)) for about, made in ACCEPTED),
                *WRITTEN_OTHERWISE,
            )
        ],
        "other_dialects": [accepted(about, json.dumps(made)) for about, made in OTHER_DIALECTS],
        "refused": [
            {"code": code, "path": path, "text": json.dumps(made)} for code, path, made in REFUSED
        ]
        + [
            {"code": "out-of-range", "path": "max_epsilon", "text": too_large},
            {"code": "out-of-range", "path": "params.k", "text": too_long},
        ],
        "invalid": [
            {"about": about, "code": code, "path": "", "text": text} for about, code, text in TEXTS
        ],
        "repeated": [
            {"about": about, "code": code, "path": "", "text": text}
            for about, code, text in REPEATED
        ],
    }
    TARGET.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
