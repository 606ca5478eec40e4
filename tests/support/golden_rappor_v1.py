"""Writes tests/vectors/rappor-v1.json. Run once, when the derivation was frozen; never again.

The vectors freeze placement, digests, cohorts and B'. A change that alters one of them breaks every
client's memo, which is a privacy event: make a new dialect instead.
"""

import json
from pathlib import Path
from typing import Any

from rappor.mechanism import Ranges, bloom_positions, derive_cohort, memo_digest
from rappor.mechanism.encoder import Encoder
from rappor.params import Params
from rappor.typing import Kind
from rappor.wire import pack, to_text

TARGET = Path(__file__).parent.parent / "vectors" / "rappor-v1.json"
SECRET = bytes(range(32))
VALUES = ["", "a", "example.com", "日本語", "emoji 🎉", "nul\0inside", "x" * 200, "é", "e\u0301"]
SHAPES = [(2, 1, 1), (3, 2, 4), (8, 4, 1), (100, 3, 7), (128, 2, 64), (4096, 16, 1024)]


def placements() -> list[dict[str, Any]]:
    rows = []
    for k, h, m in SHAPES:
        params = Params(k, h, m, 0.5, 0.5, 0.75)
        for number, value in enumerate(VALUES):
            cohort = (number * 389 + m - 1) % m
            positions = bloom_positions(value, cohort, params)
            rows.append(
                {
                    "k": k,
                    "h": h,
                    "m": m,
                    "cohort": cohort,
                    "value": value,
                    "positions": list(positions),
                }
            )
    return rows


def memos() -> list[dict[str, Any]]:
    ranges = Ranges.magnitudes(10, 0, 3)
    fs = [0.0, 0.5, 0.75, 0.1, 0.2001, 1e-9]
    cases: list[tuple[Kind, tuple[int, int, int], dict[str, Any], list[Any]]] = [
        ("string", (128, 2, 64), {}, ["", "example.com", "日本語"]),
        ("string", (4096, 2, 4), {}, ["example.com"]),
        ("string", (7, 2, 4), {}, ["example.com"]),
        ("category", (3, 1, 1), {"categories": ["a", "b", "c"]}, ["a", "c"]),
        ("boolean", (1, 1, 16), {}, [True, False]),
        ("ordinal", (5, 1, 2), {"edges": ["1/1", "10/1", "100/1", "1000/1"]}, [0, 12.5, 10**6]),
        ("bits", (12, 1, 2), {}, [0, 0b101010101010]),
    ]
    rows = []
    for f in fs:
        for kind, shape, extra, values in cases:
            params = Params(*shape, f, 0.5, 0.75)
            given: dict[str, Any] = {"categories": extra.get("categories")}
            if kind == "ordinal":
                given["ranges"] = ranges
            for period in (None, "2026-W07") if kind == "string" else (None,):
                encoder = Encoder(
                    params, secret=SECRET, collection="homepage", kind=kind, period=period, **given
                )
                for value in values:
                    rows.append(
                        {
                            "kind": kind,
                            "k": params.k,
                            "h": params.h,
                            "m": params.m,
                            "f": f,
                            **extra,
                            "collection": "homepage",
                            "period": period,
                            "value": value,
                            "memo_digest": encoder.memo_digest,
                            "cohort": encoder.cohort,
                            "signal": to_text(encoder.trace(value).signal, params.k),
                            "permanent": to_text(encoder.trace(value).permanent, params.k),
                            "packed_permanent": pack(
                                encoder.trace(value).permanent, params.k
                            ).hex(),
                            "null_permanent": to_text(encoder._null(), params.k),
                        }
                    )
    return rows


def main() -> None:
    params = [
        Params(128, 2, 16, 0.5, 0.5, 0.75),
        Params(1, 1, 1, 0.1, 0.0, 1.0),
        Params(4096, 16, 1024, 0.0, 5e-324, 1 - 2**-53),
    ]
    document = {
        "note": "Frozen. secret is hex; bit strings have bit k-1 first.",
        "secret": SECRET.hex(),
        "params_digests": [{"params": p.to_dict(), "digest": p.digest} for p in params],
        "memo_digests": [
            {"dialect": dialect, "digest": memo_digest(params[0], "string", dialect)}
            for dialect in ("rappor-v1", "google", "google-java", "chromium")
        ],
        "cohorts": [
            {"collection": name, "m": m, "cohort": derive_cohort(SECRET, name, m)}
            for name in ("homepage", "日本語", "x" * 100)
            for m in (1, 2, 3, 7, 64, 1000, 1024)
        ],
        "placements": placements(),
        "memos": memos(),
        "bad": [
            {"why": "h >= k", "k": 2, "h": 2, "m": 1, "cohort": 0, "value": "a"},
            {"why": "cohort = m", "k": 8, "h": 2, "m": 4, "cohort": 4, "value": "a"},
            {"why": "cohort < 0", "k": 8, "h": 2, "m": 4, "cohort": -1, "value": "a"},
            {"why": "cohort is no number", "k": 8, "h": 2, "m": 4, "cohort": "0", "value": "a"},
            {
                "why": "cohort is a truth value",
                "k": 8,
                "h": 2,
                "m": 4,
                "cohort": True,
                "value": "a",
            },
            {"why": "value is a number", "k": 8, "h": 2, "m": 4, "cohort": 0, "value": 7},
            {"why": "value is nothing", "k": 8, "h": 2, "m": 4, "cohort": 0, "value": None},
            {
                "why": "half a surrogate pair",
                "k": 8,
                "h": 2,
                "m": 4,
                "cohort": 0,
                "value": "\ud800",
            },
        ],
    }
    TARGET.write_text(json.dumps(document, indent=1) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
