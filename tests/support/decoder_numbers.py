"""The numbers of small decodes of every kind, for the decoder version that makes them.

    python tests/support/decoder_numbers.py [--unreleased]

writes tests/vectors/decoder_numbers.json. Results are saved under `DECODER_VERSION`
(`rappor.decoding.options`), so that a change of numbers has to raise it; not with --unreleased,
when nothing was saved under the version of the file yet.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import rappor
from rappor import Counts, Field, Params, Ranges, simulate
from rappor.decoding.exports import columns, difference_columns, without_nan
from rappor.decoding.options import DECODER_VERSION, Correction
from rappor.decoding.result import Decoded
from rappor.mechanism import Views

TARGET = Path(__file__).parents[1] / "vectors" / "decoder_numbers.json"
TOLERANCE = 1e-6  # relative: platforms agree to more digits than this
_ROUNDING = 1e-9  # of the largest number in a column: an exact 0 may be this on another platform
STRINGS = Params(32, 2, 4, 0.25, 0.35, 0.65)
BITS = Params(4, 1, 2, 0.25, 0.35, 0.65)
NAMES = [f"v{number}" for number in range(8)]
SHARES = dict(zip(NAMES, (0.4, 0.2, 0.1, 0.05, 0.02), strict=False))

Numbers = dict[str, list[Any]]


def _string(correction: Correction, unlisted: float = 0.0, **more: Any) -> Numbers:
    """Eight candidates, five of them there, of 20,000 reports."""
    people = {**SHARES, "unlisted": unlisted} if unlisted else SHARES
    counts = simulate.counts(people, STRINGS, 20_000, seed=16)
    return _decoded(rappor.decode(counts, NAMES, correction=correction, **more))


def _bits(kind: str, looked_for: Any, ones: list[int]) -> Numbers:
    params = BITS if kind != "boolean" else Params(1, 1, 2, 0.25, 0.35, 0.65)
    counts = Counts(params, [2_000, 2_000], [ones, ones[::-1]], kind=kind)
    found = rappor.decode(counts, looked_for)
    return _decoded(found if isinstance(found, Decoded) else found.decoded)


def _decoded(found: Decoded) -> Numbers:
    """The columns of all rows, and the facts about the whole."""
    mass = found.undetected_mass
    facts = (found.chi2_dof, found.scale, found.threshold, found.forged_to_detect)
    whole = [*facts, mass.count, mass.low_95, mass.high_95]
    return {**columns(found, every=True), "whole": whole, "robust": [found.robust]}


def _compared() -> Numbers:
    new, old = (
        simulate.counts({**SHARES, "v1": share}, STRINGS, 20_000, seed=seed)
        for seed, share in ((1, 0.35), (2, 0.2))
    )
    return difference_columns(rappor.compare(new, old, NAMES), every=True)


def _associated() -> Numbers:
    views = Views((Field("page", "string"), Field("channel", "category", ("stable", "beta"))))
    held = {("a", "stable"): 0.5, ("a", "beta"): 0.1, ("b", "stable"): 0.1, ("b", "beta"): 0.3}
    counts = simulate.counts(
        simulate.tuples(views.fields, held),
        Params(32, 1, 8, 0.0, 0.25, 0.75),
        20_000,
        seed=3,
        kind="tuple",
        fields=views.fields,
        views=views.views,
    )
    found = rappor.associate(counts, {"page": ["a", "b", "c"]}, views=views)
    rows = [cell._asdict() for cell in found.rows]
    whole = [*found.independence, *found.unlisted_mass]
    return {**{name: [row[name] for row in rows] for name in rows[0]}, "whole": whole}


DECODES: Mapping[str, Callable[[], Numbers]] = {
    "string, fdr": lambda: _string("fdr"),
    "string, holm": lambda: _string("holm"),
    "string, bh": lambda: _string("bh"),
    "string, lasso": lambda: _string("fdr", method="lasso"),
    "string, robust": lambda: _string("fdr", unlisted=0.8),
    "category": lambda: _bits("category", ["a", "b", "c", "d"], [1_100, 900, 720, 710]),
    "boolean": lambda: _bits("boolean", None, [1_100]),
    "bits": lambda: _bits("bits", None, [1_100, 900, 720, 710]),
    "ordinal": lambda: _bits("ordinal", Ranges((1, 2, 3)), [1_000, 900, 790, 720]),
    "compare": _compared,
    "associate": _associated,
}


def numbers(name: str) -> Numbers:
    """What one of `DECODES` makes, ready for JSON."""
    ready: Numbers = without_nan({key: list(column) for key, column in DECODES[name]().items()})
    return ready


def changed(then: Mapping[str, list[Any]], now: Mapping[str, list[Any]]) -> list[str]:
    """The columns whose numbers differ by more than the tolerance, or that one side lacks."""
    return [
        name
        for name in {**then, **now}
        if name not in then or name not in now or not _same(name, then[name], now[name])
    ]


def _same(name: str, then: list[Any], now: list[Any]) -> bool:
    """Whether the numbers of a column agree; 0 in rounding is small next to the largest of them.

    P-values are compared by themselves, however small.
    """
    floats = [abs(cell) for cell in then if isinstance(cell, float)]
    near_0 = 0.0 if "p_value" in name else _ROUNDING * max(floats, default=0.0)
    return len(then) == len(now) and all(
        math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=near_0)
        if isinstance(one, float) and isinstance(other, float)
        else one == other
        for one, other in zip(then, now, strict=True)
    )


def read() -> dict[str, Any]:
    """The version and its numbers, as they were written."""
    found: dict[str, Any] = json.loads(TARGET.read_text(encoding="utf-8"))
    return found


def main(unreleased: bool) -> None:
    """Write the file; exit if its numbers changed and the version did not."""
    made = {name: numbers(name) for name in DECODES}
    if TARGET.exists() and not unreleased:
        before = read()
        other = [name for name in made if changed(before["numbers"].get(name, {}), made[name])]
        if other and before["version"] == DECODER_VERSION:
            raise SystemExit(f"numbers changed ({', '.join(other)}): raise DECODER_VERSION first")
    text = json.dumps({"version": DECODER_VERSION, "numbers": made}, indent=1, ensure_ascii=False)
    TARGET.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main("--unreleased" in sys.argv[1:])
