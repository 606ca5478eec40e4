"""What any backend of the store must do. A backend's tests subclass `StoreContract`.

The subclass has the fixture `open_`, a function from a name to an open store: the same name is the
same store, also while it is open, from any thread.
"""

import datetime
import random
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rappor.collection import Registry
from rappor.errors import StoreError
from rappor.store import CellKey, Fold, Store
from support import store_samples as samples
from support.store_samples import DAY, PARAMS, PERIOD, always, cell, collection, fold, token

Open = Callable[..., Store]


def totals(store: Store, **wanted: Any) -> list[int]:
    return [each.reports for each in store.counts("homepage", **wanted)]


@pytest.fixture
def store(open_: Open) -> Store:
    made = open_("a")
    made.save_definition(collection(keep_reports_days=7).to_toml(), actor="ann")
    return made


class StoreContract:
    """Tests of the protocol `rappor.store.Store`."""

    # Counting.

    def test_counts_are_the_sums_of_what_was_added(self, store: Store) -> None:
        rng = random.Random(1)
        wanted: dict[CellKey, Any] = {}
        for number in range(40):
            key = cell(rng.choice([PERIOD, "2026-11-15"]), rng.choice(["NZ", "CH", "other"]))
            folds = samples.random_folds(rng, key)
            assert store.add([token(number)], always(folds), DAY) == [True]
            table = wanted.setdefault(key, np.zeros((PARAMS.m, PARAMS.k + 1), np.int64))
            for part in folds:
                table[part.cohort] += [part.total, *part.ones]
        found = store.counts("homepage", 1)
        assert [each.cell for each in found] == sorted(wanted)
        for each in found:
            assert each.params_digest == PARAMS.digest
            assert each.totals.tolist() == wanted[each.cell][:, 0].tolist()
            assert each.ones.tolist() == wanted[each.cell][:, 1:].tolist()
        assert [each.reports for each in store.cells()] == [each.reports for each in found]

    def test_counts_can_be_asked_for_by_version_period_and_dimensions(self, store: Store) -> None:
        keys = [cell(), cell("2026-11-15"), cell(country="CH")]
        for number, key in enumerate(keys):
            store.add([token(number)], always([fold(key, 0, [0] * (number + 1))]), DAY)
        assert totals(store) == [2, 3, 1]  # by period, then by dimensions
        assert totals(store, periods=[PERIOD]) == [3, 1]
        assert totals(store, dimensions="country=NZ;os=mac") == [2, 1]
        assert totals(store, version=1, periods=["2026-11-15"]) == [2]
        assert totals(store, version=2) == []
        assert store.counts("nothing") == []

    def test_folds_of_one_cohort_in_one_call_add_up(self, store: Store) -> None:
        store.add([token(1)], always([fold(cell(), 2, [1]), fold(cell(), 2, [3])]), DAY)
        (found,) = store.counts("homepage")
        assert found.totals.tolist() == [0, 0, 2, 0]
        assert found.ones[2, :3].tolist() == [2, 1, 0]

    def test_numbers_beyond_32_bits_are_exact_and_beyond_63_refused(self, store: Store) -> None:
        ones = np.full(PARAMS.k, 2**61, np.int64)
        huge = Fold(cell(), 0, PARAMS.digest, 2**62, ones)
        store.add([token(1)], always([huge]), DAY)
        with pytest.raises(StoreError, match="2\\^63"):
            store.add([token(2)], always([huge]), DAY)
        assert totals(store) == [2**62]

    # Exactly once.

    def test_a_replay_is_told_and_changes_nothing(self, store: Store) -> None:
        folds = always([fold(cell(), 0, [1, 2, 3])])
        assert store.add([token(1)], folds, DAY) == [True]
        before = samples.everything(store)
        assert store.add([token(1)], folds, DAY) == [False]
        assert samples.everything(store) == before

    def test_a_replay_on_another_day_is_told(self, store: Store) -> None:
        folds = always([fold(cell(), 0, [1])])
        assert store.add([token(1)], folds, DAY) == [True]
        for days in (-2, 1, 14):
            later = DAY + datetime.timedelta(days=days)
            assert store.add([token(1)], folds, later) == [False]
        assert totals(store) == [1]

    def test_a_token_twice_in_one_call_counts_once(self, store: Store) -> None:
        asked: list[list[int]] = []

        def folds(indices: Any) -> list[Fold]:
            asked.append(list(indices))
            return [fold(cell(), 0, [1] * len(indices))]

        tokens = [token(1), token(2), token(1), token(3), token(2)]
        assert store.add(tokens, folds, DAY) == [True, True, False, True, False]
        assert asked == [[0, 1, 3]]
        assert totals(store) == [3]

    def test_nothing_is_folded_where_no_token_is_new(self, store: Store) -> None:
        store.add([token(1)], always([]), DAY)

        def never(_: Any) -> list[Fold]:
            raise AssertionError("folded")

        assert store.add([token(1), token(1)], never, DAY) == [False, False]
        assert store.add([], never, DAY) == []

    def test_tokens_that_are_not_16_bytes_are_refused(self, store: Store) -> None:
        for wrong in (b"", bytes(15), bytes(17), "a" * 16):
            with pytest.raises(StoreError, match="16 bytes"):
                store.add([wrong], always([]), DAY)  # type: ignore[list-item]

    def test_a_file_is_counted_once_for_ever(self, store: Store) -> None:
        folds = [fold(cell(), 0, [1, 2])]
        assert store.add_file(b"digest", folds, actor="ann", detail="a.csv")
        store.retain(DAY + datetime.timedelta(days=100))
        assert not store.add_file(b"digest", folds, actor="ann", detail="a.csv")
        assert totals(store) == [2]
        assert [each.action for each in store.audit_log()] == ["define", "import", "retain"]

    # All or nothing.

    def test_an_error_while_folding_leaves_nothing_behind(self, store: Store) -> None:
        def broken(_: Any) -> Any:
            yield fold(cell(), 0, [1])
            raise RuntimeError("planted")

        before = samples.everything(store)
        with pytest.raises(RuntimeError, match="planted"):
            store.add([token(1)], broken, DAY)
        assert samples.everything(store) == before
        assert store.add([token(1)], always([fold(cell(), 0, [1])]), DAY) == [True]

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            (Fold(cell(), 4, PARAMS.digest, 1, np.ones(20, np.int64)), "cohort must be 0 to 3"),
            (Fold(cell(), -1, PARAMS.digest, 1, np.ones(20, np.int64)), "cohort must be 0 to 3"),
            (Fold(cell(), 0, "0" * 64, 1, np.ones(20, np.int64)), "other parameters"),
            (Fold(cell(), 0, PARAMS.digest, 1, np.ones(21, np.int64)), "shape"),
            (Fold(cell(), 0, PARAMS.digest, 1, np.ones(20)), "whole numbers"),  # type: ignore[arg-type]
            (Fold(cell(), 0, PARAMS.digest, 1, np.full(20, 2)), "0 to the total"),
            (Fold(cell(), 0, PARAMS.digest, 1, np.full(20, -1)), "0 to the total"),
            (Fold(cell(), 0, PARAMS.digest, -1, np.zeros(20, np.int64)), "total"),
            (Fold(cell(), 0, PARAMS.digest, 2, np.ones(20, np.int64), bytes(3)), "not 2 reports"),
            (Fold(cell("2026-W47"), 0, PARAMS.digest, 1, np.ones(20, np.int64)), "UTC day"),
            (fold(cell(version=2), 0, [1]), "no definition"),
            (fold(cell(name="unknown"), 0, [1]), "no definition"),
            (fold(cell(country="XX"), 0, [1]), "does not declare"),
            (fold(CellKey("homepage", 1, PERIOD, "country=NZ"), 0, [1]), "does not declare"),
            (fold(CellKey("homepage", 1, PERIOD, "os=mac;country=NZ"), 0, [1]), "canonical"),
        ],
    )
    def test_folds_that_contradict_their_definition_are_refused_whole(
        self, store: Store, wrong: Fold, message: str
    ) -> None:
        before = samples.everything(store)
        with pytest.raises(StoreError, match=message):
            store.add([token(1)], always([fold(cell(), 0, [1]), wrong]), DAY)
        assert samples.everything(store) == before
        assert store.add([token(1)], always([]), DAY) == [True]

    # Reports.

    def test_kept_reports_come_back_by_cohort_and_not_in_order(self, store: Store) -> None:
        sent = list(range(1, 301))
        for number in range(0, 300, 3):
            folds = [fold(cell(), 1, sent[number : number + 3], keep=True)]
            store.add([token(number)], always(folds), DAY)
        store.add([token(1000)], always([fold(cell(), 3, [7], keep=True)]), DAY)
        ((key, cohort, data), (_, other, seven)) = store.reports("homepage")
        found = [int.from_bytes(data[at : at + 3], "little") for at in range(0, len(data), 3)]
        assert (key, cohort, other, seven) == (cell(), 1, 3, samples.packed([7]))
        assert sorted(found) == sent
        # In a random order, neighbours stay together twice on average: 30 has odds below 1e-20.
        assert sum(right - left == 1 for left, right in pairwise(found)) < 30
        again = [data for _, number, data in store.reports("homepage") if number == 1]
        assert again[0] != data
        assert [each.kept for each in store.cells()] == [301]

    def test_reports_are_refused_where_the_definition_keeps_counts_only(self, store: Store) -> None:
        store.save_definition(collection(version=2).to_toml(), actor="ann")
        with pytest.raises(StoreError, match="keeps no reports"):
            store.add([token(1)], always([fold(cell(version=2), 0, [1], keep=True)]), DAY)

    # Definitions and the audit log.

    def test_a_definition_is_saved_once_and_read_back(self, store: Store) -> None:
        text = collection(version=2).to_toml()
        assert store.save_definition(text, actor="ben")
        assert not store.save_definition(text, actor="ben")
        assert [(each.collection, each.version) for each in store.definitions()] == [
            ("homepage", 1),
            ("homepage", 2),
        ]
        assert store.definitions()[1].toml == text
        log = store.audit_log()
        assert [(each.actor, each.action, each.detail) for each in log] == [
            ("ann", "define", "homepage v1"),
            ("ben", "define", "homepage v2"),
        ]

    def test_a_saved_version_keeps_its_meaning(self, store: Store) -> None:
        same = collection(keep_reports_days=7, owner="others@example.org")
        assert store.save_definition(same.to_toml(), actor="ben")
        other = collection(keep_reports_days=7, dimensions={"country": ("NZ",)})
        with pytest.raises(StoreError, match="new version"):
            store.save_definition(other.to_toml(), actor="ben")
        with pytest.raises(StoreError, match="not a collection's definition"):
            store.save_definition("nonsense", actor="ben")
        assert [each.toml for each in store.definitions()] == [same.to_toml()]

    def test_the_audit_log_keeps_everything_in_order(self, store: Store) -> None:
        for number in range(20):
            store.audit(f"actor {number}", "export", "détail ε")
        log = store.audit_log()[1:]
        assert [each.actor for each in log] == [f"actor {number}" for number in range(20)]
        assert {each.detail for each in log} == {"détail ε"}
        assert all(datetime.datetime.fromisoformat(each.when) for each in log)

    # Retention.

    def test_reports_go_after_their_days_and_counts_stay(self, store: Store) -> None:
        for number, period in enumerate(["2026-11-08", "2026-11-09"]):
            folds = [fold(cell(period), 0, [1, 2], keep=True)]
            store.add([token(number)], always(folds), DAY)
        before = [each.ones.tolist() for each in store.counts("homepage")]
        planned = store.retain(DAY, dry_run=True)
        assert (planned.reports, planned.report_cells) == (2, (cell("2026-11-08"),))
        assert [each.kept for each in store.cells()] == [2, 2]
        assert store.retain(DAY).reports == 2
        assert [each.kept for each in store.cells()] == [0, 2]
        assert [key.period for key, _, _ in store.reports("homepage")] == ["2026-11-09"]
        assert [each.ones.tolist() for each in store.counts("homepage")] == before
        assert store.retain(DAY).reports == 0
        assert store.audit_log()[-1].action == "retain"

    def test_an_expired_version_goes_whole(self, store: Store) -> None:
        soon = DAY + datetime.timedelta(days=1)
        store.save_definition(collection("brief", 1, expires=soon).to_toml(), actor="ann")
        for number, name in enumerate(["homepage", "brief"]):
            store.add([token(number)], always([fold(cell(name=name), 0, [1])]), DAY)
        assert store.retain(DAY).count_cells == ()
        done = store.retain(soon)
        assert (done.count_cells, done.counted) == ((cell(name="brief"),), 1)
        assert store.counts("brief") == []
        assert totals(store) == [1]
        assert store.check() == []

    def test_a_registry_decides_before_what_was_saved(self, store: Store) -> None:
        store.add([token(1)], always([fold(cell("2026-11-12"), 0, [1], keep=True)]), DAY)
        shorter = Registry([collection(keep_reports_days=3)])
        assert store.retain(DAY, dry_run=True).reports == 0
        assert store.retain(DAY, shorter).reports == 1

    def test_tokens_are_forgotten_when_no_replay_could_be_accepted(self, store: Store) -> None:
        folds = always([fold(cell(), 0, [1])])
        store.add([token(1)], folds, DAY)
        # The batch may have named tomorrow's period, which is accepted for 14 days; and the clock
        # may have been two days ahead, or the batch admitted a moment before midnight.
        kept = DAY + datetime.timedelta(days=15 + 3)
        assert store.retain(kept).tokens == 0
        assert store.add([token(1)], folds, kept) == [False]
        assert store.retain(kept + datetime.timedelta(days=1)).tokens == 1
        assert store.add([token(1)], folds, kept) == [True]
        assert store.check() == []

    def test_tokens_of_a_week_are_kept_until_its_last_day_is_refused(self, store: Store) -> None:
        """A week is accepted for 14 days after its Sunday: 21 days after the Sunday before it.

        Three days more are for clocks that were ahead.
        """
        weekly = collection("weekly", period="week")
        store.save_definition(weekly.to_toml(), actor="ann")
        monday = datetime.date(2026, 11, 16)
        folds = always([fold(cell("2026-W47", name="weekly"), 0, [1])])
        store.add([token(1)], folds, monday - datetime.timedelta(days=1))  # a clock that is fast
        last = monday + datetime.timedelta(days=6 + 14 + 3)
        assert store.retain(last).tokens == 0
        assert store.add([token(1)], folds, last) == [False]
        assert store.retain(last + datetime.timedelta(days=1)).tokens == 1

    # Several at once.

    @pytest.mark.parametrize("keep", [True, False], ids=["reports are kept", "counts only"])
    def test_writers_are_as_if_one_after_the_other(
        self, store: Store, open_: Open, keep: bool
    ) -> None:
        """B7: four writers, two of them in one store object, with replays of each other."""
        stores = [store, store, open_("a"), open_("a")]
        for number, writer in enumerate(stores):  # whose rows exist then
            folds = [fold(cell(), cohort, [1], keep=keep) for cohort in range(PARAMS.m)]
            assert writer.add([token(10_000 + number)], always(folds), DAY) == [True]
        failed: list[BaseException] = []
        accepted = [0] * len(stores)

        def write(me: int) -> None:
            try:
                for number in range(40):
                    folds = always([fold(cell(), number % 4, [1], keep=keep)])
                    tokens = [token(number)] if number % 2 else [token(1000 * (me + 1) + number)]
                    accepted[me] += sum(stores[me].add(tokens, folds, DAY))
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=write, args=(me,)) for me in range(len(stores))]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert failed == []
        assert sum(accepted) == 20 + 4 * 20
        (found,) = store.counts("homepage")
        assert found.totals.tolist() == [44, 14, 44, 14]
        assert found.ones[:, 0].tolist() == [44, 14, 44, 14]
        assert store.check() == []

    def test_readers_see_whole_transactions_while_others_write(
        self, store: Store, open_: Open
    ) -> None:
        done = threading.Event()
        failed: list[object] = []
        reader = open_("a", read_only=True)

        def read() -> None:
            try:
                seen = 0
                while not done.is_set():
                    for each in reader.counts("homepage"):
                        # Each add brings one report to each cohort, with every bit set.
                        if len(set(each.totals.tolist())) > 1 or (each.totals != each.ones.T).any():
                            failed.append(each)
                        if each.reports < seen:
                            failed.append("went back")
                        seen = each.reports
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=read)
        thread.start()
        every = [fold(cell(), cohort, [2**20 - 1]) for cohort in range(4)]
        try:
            for number in range(100):
                store.add([token(number)], always(every), DAY)
        finally:
            done.set()
            thread.join()
        assert failed == []
        assert totals(reader) == [400]

    def test_chosen_cells_have_the_counts_that_all_have(self, store: Store) -> None:
        for number, key in enumerate((cell(), cell("2026-11-15"), cell(country="CH"))):
            store.add([token(number)], always([fold(key, 0, [1 << number])]), DAY)
        first, _, last = store.counts("homepage")
        gone = cell("2026-11-14")
        found = store.counts_of([last.cell, gone, first.cell])
        assert [each.cell for each in found] == [last.cell, first.cell]
        assert [each.ones.tolist() for each in found] == [last.ones.tolist(), first.ones.tolist()]

    def test_what_is_open_for_reading_refuses_to_write(self, store: Store, open_: Open) -> None:
        reader = open_("a", read_only=True)
        for change in (
            lambda: reader.add([token(1)], always([]), DAY),
            lambda: reader.audit("ann", "export", ""),
            lambda: reader.retain(DAY),
            lambda: reader.save_definition(collection(version=2).to_toml(), actor="ann"),
        ):
            with pytest.raises(StoreError, match="reading only"):
                change()
        assert reader.retain(DAY, dry_run=True).tokens == 0

    # Copies, restarts.

    def test_all_is_there_after_closing_and_opening(self, open_: Open) -> None:
        store = open_("b")
        samples.fill(store)
        before = samples.everything(store)
        store.close()
        with pytest.raises(StoreError, match="closed"):
            store.cells()
        again = open_("b")
        assert samples.everything(again) == before
        assert again.check() == []

    def test_a_backup_taken_while_writing_is_a_whole_store(
        self, store: Store, open_: Open, tmp_path: Path, restore: Callable[[Path, str], None]
    ) -> None:
        every = [fold(cell(), cohort, [2**20 - 1]) for cohort in range(4)]
        done = threading.Event()

        def write() -> None:
            number = 0
            while not done.is_set():
                store.add([token(number)], always(every), DAY)
                number += 1

        thread = threading.Thread(target=write)
        thread.start()
        try:
            for number in range(5):
                store.backup(tmp_path / f"{number}.backup")
        finally:
            done.set()
            thread.join()
        store.backup(tmp_path / "last.backup")
        for number in range(5):
            restore(tmp_path / f"{number}.backup", f"restored {number}")
            copy = open_(f"restored {number}")
            assert copy.check() == []
            for each in copy.counts("homepage"):
                assert len(set(each.totals.tolist())) == 1
        restore(tmp_path / "last.backup", "last")
        assert samples.everything(open_("last")) == samples.everything(store)

    def test_a_restored_store_goes_on_counting_once(
        self, store: Store, open_: Open, tmp_path: Path, restore: Callable[[Path, str], None]
    ) -> None:
        folds = always([fold(cell(), 0, [1])])
        store.add([token(1)], folds, DAY)
        store.backup(tmp_path / "copy")
        restore(tmp_path / "copy", "again")
        again = open_("again")
        assert again.add([token(1), token(2)], folds, DAY) == [False, True]
        assert totals(again) == [2]

    def test_settling_changes_nothing_that_can_be_read(self, open_: Open) -> None:
        store = open_("b")
        samples.fill(store)
        before = samples.everything(store)
        store.settle()
        assert samples.everything(store) == before
        assert store.check() == []
