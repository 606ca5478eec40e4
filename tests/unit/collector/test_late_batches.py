"""Batches that come late or under a wrong clock: admission, retention and store count them once."""

import datetime
from pathlib import Path

from rappor.collection import Collection, Registry
from rappor.collector.admission import Admission, Admitted
from rappor.collector.fold import folds
from rappor.params import Params
from rappor.store import open_store
from rappor.wire import Batch, encode_batch

DAY = datetime.date(2026, 11, 16)


class Clocked:
    """Admission and store of one collection, under a clock that can be set."""

    def __init__(self, folder: Path) -> None:
        collection = Collection("homepage", 1, Params(8, 1, 4, 0.5, 0.5, 0.75))
        self.registry = Registry([collection])
        self.today = DAY
        self.admission = Admission(self.registry, lambda: self.today)
        self.store = open_store(folder)
        self.store.save_definition(collection.to_toml(), actor="test")

    def retain(self) -> None:
        self.store.retain(self.today, self.registry)

    def commit(self, admitted: Admitted) -> list[bool]:
        return self.store.add([admitted.token], lambda _: list(folds([admitted])), self.today)


# Sent by a client whose clock is a day ahead, as is allowed.
AHEAD = encode_batch(Batch(bytes(16), "homepage", 1, "2026-11-17", (), 8, b"\1\0", b"\1"))


def test_a_batch_admitted_before_midnight_is_the_only_one_of_its_token(tmp_path: Path) -> None:
    """Sent again in the last moment in which it is accepted: the daily retention comes between its
    admission and its commit."""
    place = Clocked(tmp_path)
    assert place.commit(place.admission.admit_bytes(AHEAD)) == [True]
    place.today = datetime.date(2026, 12, 1)  # fourteen days after its period
    again = place.admission.admit_bytes(AHEAD)
    place.today = datetime.date(2026, 12, 2)  # midnight
    place.retain()
    assert place.commit(again) == [False]
    place.store.close()


def test_a_clock_two_days_ahead_for_a_while_counts_nothing_twice(tmp_path: Path) -> None:
    """Retention runs under a wrong clock; then it is set right, and a batch comes again."""
    place = Clocked(tmp_path)
    assert place.commit(place.admission.admit_bytes(AHEAD)) == [True]
    for later in range(16):
        right = DAY + datetime.timedelta(days=later)
        place.today = right + datetime.timedelta(days=2)
        place.retain()
        place.today = right
        assert place.commit(place.admission.admit_bytes(AHEAD)) == [False], f"{later} days later"
    place.store.close()
