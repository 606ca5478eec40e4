"""Admission: what fits a collection today, and that the day is looked at again."""

import datetime
import os
from collections.abc import Callable
from typing import Any

import pytest

from rappor import Report
from rappor.collection import Collection, Registry
from rappor.collector.admission import Admission
from rappor.collector.refusal import Refusal
from rappor.errors import WireError
from rappor.params import Params
from rappor.wire import Batch, decode_batch, encode_batch
from support.collecting import PARAMS

MONDAY = datetime.date(2026, 11, 16)


class Clock:
    def __init__(self, day: datetime.date) -> None:
        self.day = day

    def __call__(self) -> datetime.date:
        return self.day


def batch(period: str = "2026-11-16", cohort: int = 0, **changed: object) -> Batch:
    fields = {"token": bytes(16), "collection": "c", "version": 1, "period": period, "k": 16}
    return Batch.of([Report(cohort, 1)], **(fields | changed))


def code_of(admission: Admission, sent: Batch) -> str | None:
    """The code of a refusal, which is the same however a batch comes and however often."""
    codes = {_code_of(admission.admit, sent)}
    codes |= {_code_of(admission.admit_bytes, encode_batch(sent)) for _ in range(3)}
    (code,) = codes
    return code


def _code_of(admit: Callable[[Any], object], sent: object) -> str | None:
    try:
        admit(sent)
    except Refusal as refusal:
        return refusal.code
    return None


def test_the_window_moves_with_the_clock_although_cells_are_remembered() -> None:
    clock = Clock(MONDAY)
    admission = Admission(Registry([Collection("c", 1, PARAMS)]), clock)
    assert code_of(admission, batch("2026-11-16")) is None
    assert code_of(admission, batch("2026-11-16")) is None
    clock.day = MONDAY + datetime.timedelta(days=14)
    assert code_of(admission, batch("2026-11-16")) is None
    clock.day = MONDAY + datetime.timedelta(days=15)
    assert code_of(admission, batch("2026-11-16")) == "period-closed"
    clock.day = MONDAY - datetime.timedelta(days=2)
    assert code_of(admission, batch("2026-11-16")) == "period-closed"


def test_a_collection_ends_on_the_day_it_expires() -> None:
    clock = Clock(MONDAY)
    ends = Collection("c", 1, PARAMS, expires=MONDAY + datetime.timedelta(days=1))
    admission = Admission(Registry([ends]), clock)
    assert code_of(admission, batch()) is None
    clock.day += datetime.timedelta(days=1)
    assert code_of(admission, batch("2026-11-17")) == "expired-collection"


def test_reports_are_labelled_with_the_parameters_of_their_period() -> None:
    scheduled = Collection("c", 1, PARAMS, schedule=(("2026-11-16", 0.25, 0.75),))
    admission = Admission(Registry([scheduled]), Clock(MONDAY))
    assert admission.admit(batch("2026-11-15")).destination.digest == PARAMS.digest
    later = Params(k=16, h=2, m=4, f=0.5, p=0.25, q=0.75)
    assert admission.admit(batch("2026-11-16")).destination.digest == later.digest


@pytest.mark.parametrize("cohort", [4, 255, 256, 1023])
def test_a_cohort_from_m_on_is_refused_alone_and_among_others(cohort: int) -> None:
    admission = Admission(Registry([Collection("c", 1, PARAMS)]), Clock(MONDAY))
    assert code_of(admission, batch(cohort=3)) is None
    assert code_of(admission, batch(cohort=cohort)) == "wrong-params"
    several = Batch.of(
        [Report(0, 1), Report(cohort, 1), Report(1, 1)],
        token=bytes(16), collection="c", version=1, period="2026-11-16", k=16,
    )  # fmt: skip
    assert code_of(admission, several) == "wrong-params"


def test_both_versions_are_taken_and_cells_are_their_own() -> None:
    registry = Registry(Collection("c", version, PARAMS) for version in (1, 2))
    admission = Admission(registry, Clock(MONDAY))
    cells = {admission.admit(batch(version=version)).destination.cell for version in (1, 2)}
    assert {cell.version for cell in cells} == {1, 2}
    assert code_of(admission, batch(version=3)) == "unknown-collection"


def test_a_dimension_must_be_declared_complete_and_canonical() -> None:
    declared = Collection("c", 1, PARAMS, dimensions={"os": ("mac",), "country": ("NZ", "10/11")})
    admission = Admission(Registry([declared]), Clock(MONDAY))
    for pairs, code in [
        ((("country", "NZ"), ("os", "mac")), None),
        ((("country", "10/11"), ("os", "other")), None),
        ((("country", "NZ"),), "wrong-dimensions"),
        ((), "wrong-dimensions"),
        ((("country", "FR"), ("os", "mac")), "wrong-dimensions"),
        ((("age", "1"), ("country", "NZ"), ("os", "mac")), "wrong-dimensions"),
    ]:
        assert code_of(admission, batch(dimensions=pairs)) == code


@pytest.mark.parametrize("k", [1, 8, 13, 16, 128])
@pytest.mark.parametrize("reports", [1, 2, 7])
def test_the_short_way_finds_what_the_long_way_finds(k: int, reports: int) -> None:
    params = Params(k=k, h=1, m=300, f=0.5, p=0.5, q=0.75)
    kind = "boolean" if k == 1 else "bits"
    made = Collection("c", 1, params, kind=kind, dimensions={"os": ("mac",)})
    admission = Admission(Registry([made]), Clock(MONDAY))
    for number in range(4):
        sent = Batch.of(
            [Report(i * 40 + number, (1 << k) - 1) for i in range(reports)],
            token=os.urandom(16),
            collection="c",
            version=1,
            period="2026-11-16",
            k=k,
            dimensions=(("os", "mac"),),
        )
        assert admission.admit_bytes(encode_batch(sent)) == admission.admit(sent)


def test_every_changed_byte_is_judged_as_by_the_long_way() -> None:
    params = Params(k=13, h=1, m=3, f=0.5, p=0.5, q=0.75)
    warm = Admission(Registry([Collection("c", 1, params)]), Clock(MONDAY))
    fields = {"token": bytes(16), "collection": "c", "version": 1, "period": "2026-11-16", "k": 13}
    good = encode_batch(Batch.of([Report(0, 1), Report(2, 4097)], **fields))
    warm.admit_bytes(good)

    def judged(admit: Callable[[], object]) -> object:
        try:
            return admit()
        except WireError:
            return "malformed"
        except Refusal as refusal:
            return refusal.code

    changed = [
        good[:at] + bytes([value]) + good[at + 1 :]
        for at in range(len(good))
        for value in (0, 1, 2, 31, 32, 255)
    ]
    changed += [good[:at] for at in range(len(good))] + [good + b"x", good + good, b""]
    short = [judged(lambda: warm.admit_bytes(data)) for data in changed]  # noqa: B023
    long = [judged(lambda: warm.admit(decode_batch(data))) for data in changed]  # noqa: B023
    assert short == long
    assert {"malformed", "unknown-collection", "wrong-params"} <= set(short)
