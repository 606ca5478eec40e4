"""Writes tests/vectors/tuples.json. Run once, when views were frozen; never again.

The vectors freeze how cohorts are allotted to views, how a tuple becomes bytes, and B'. A change
that alters one of them breaks every client's memo, which is a privacy event.
"""

import json
from pathlib import Path
from typing import Any

from rappor.mechanism import Encoder, Field, Ranges, View, Views
from rappor.params import Params
from rappor.wire import to_text
from support.tuple_cases import shape_of

TARGET = Path(__file__).parent.parent / "vectors" / "tuples.json"
SECRET = bytes(range(32))
PAGE = Field("page", "string")
CHANNEL = Field("channel", "category", ("stable", "beta", "日本語"))
ACTIVE = Field("active", "boolean")
AGE = Field("age", "ordinal", ranges=Ranges((-0.5, 18, 65)))
FOUR = Views(
    (PAGE, CHANNEL, ACTIVE, AGE),
    (
        View(("page", "channel", "active", "age"), 0.5),
        View(("age", "page"), 0.3),
        View(("channel",), 0.2),
    ),
)
TWO = Views((PAGE, CHANNEL))
STRINGS = Views((PAGE, Field("other", "string")), (View(("page", "other"), 1),))
SHARES = [
    [0.8, 0.2],
    [0.2, 0.8],
    [0.5, 0.5],
    [0.999, 0.0005, 0.0005],
    [0.6, 0.3, 0.1],
    [0.1, 0.2, 0.3, 0.4],
    [1 / 3, 1 / 3, 1 / 3],
]
NAMES = "abcd"


def allotted(shares: list[float], m: int) -> tuple[int, ...]:
    """The cohorts of views with these shares: the whole tuple first, then one field each."""
    fields = [Field(name, "boolean") for name in NAMES]
    listed = [tuple(NAMES), *((name,) for name in NAMES)]
    return Views(
        fields, [View(names, share) for names, share in zip(listed, shares, strict=False)]
    ).cohorts(m)


def allotments() -> list[dict[str, Any]]:
    """Shares and m, with the number of cohorts of each view."""
    return [
        {"shares": shares, "m": m, "cohorts": list(allotted(shares, m))}
        for shares in SHARES
        for m in (4, 7, 8, 16, 64, 1000, 1024)
    ]


def memos() -> list[dict[str, Any]]:
    """Values in every view, with their bytes and permanent responses."""
    values: list[tuple[Views, dict[str, Any]]] = [
        (FOUR, {"page": "a.org", "channel": "beta", "active": True, "age": 20}),
        (FOUR, {"page": "", "channel": "日本語", "active": False, "age": -1}),
        (FOUR, {"page": "🎉\0é", "channel": "stable", "active": True, "age": 65}),
        (TWO, {"page": "a.org", "channel": "beta"}),
        (TWO, {"page": "x" * 300, "channel": "stable"}),
        (STRINGS, {"page": "ab", "other": "c"}),
        (STRINGS, {"page": "a", "other": "bc"}),
    ]
    rows = []
    for k, h, m, f in [(128, 2, 8, 0.5), (64, 3, 64, 0.1), (9, 1, 5, 0.0)]:
        params = Params(k, h, m, f, 0.25, 0.75)
        for views, value in values:
            for period in (None, "2026-W07") if value is values[0][1] else (None,):
                table = views.table(m)
                for view in range(len(views.views)):
                    cohort = table.index(view)
                    encoder = Encoder(
                        params, secret=SECRET, collection="install", cohort=cohort, kind="tuple",
                        fields=views.fields, views=views.views, period=period,
                    )  # fmt: skip
                    traced = encoder.trace(value)
                    rows.append(
                        {
                            "k": k,
                            "h": h,
                            "m": m,
                            "f": f,
                            **shape_of(views, m),
                            "collection": "install",
                            "period": period,
                            "cohort": cohort,
                            "value": value,
                            "memo_digest": encoder.memo_digest,
                            "memo_input": views.encode(view, value).hex(),
                            "signal": to_text(traced.signal, k),
                            "permanent": to_text(traced.permanent, k),
                            "null_permanent": to_text(encoder._null(), k),
                        }
                    )
    return rows


def refused() -> list[dict[str, Any]]:
    """Values that every client refuses, in every view."""
    good = {"page": "a.org", "channel": "beta", "active": True, "age": 20}
    changes: list[dict[str, Any]] = [
        *({name: value for name, value in good.items() if name != gone} for gone in good),
        {**good, "more": 1},
        {**good, "page": 7},
        {**good, "page": None},
        {**good, "channel": "nightly"},
        {**good, "channel": True},
        {**good, "active": 1},
        {**good, "active": "true"},
        {**good, "age": "20"},
        {**good, "age": True},
    ]
    return [{**shape_of(FOUR, 8), "value": value} for value in changes]


def main() -> None:
    """Write the file."""
    document = {
        "note": "Frozen. secret and memo_input are hex; bit strings have bit k-1 first. The first "
        "view has the first cohorts, and so on.",
        "secret": SECRET.hex(),
        "allotments": allotments(),
        "memos": memos(),
        "refused": refused(),
    }
    TARGET.write_text(json.dumps(document, indent=1) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
