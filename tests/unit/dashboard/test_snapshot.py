"""Snapshots are right, and take over what did not change from the one before."""

from rappor.collection import Collection
from rappor.dashboard.snapshot import PeriodCount, Snapshot, SnapshotBuilder
from rappor.store import CellKey, CellSummary, Definition
from support.dashboard import STRINGS

DAYS = ["2026-11-15", "2026-11-16"]


def cell(name: str, version: int, period: str, reports: int, country: str = "") -> CellSummary:
    pairs = [("country", country)] if country else []
    return CellSummary(CellKey.of(name, version, period, pairs), STRINGS.digest, 64, 8, reports, 0)


def build(builder: SnapshotBuilder, *cells: CellSummary) -> Snapshot:
    definitions = [
        Definition(name, version, Collection(name, version, STRINGS).to_toml())
        for name, version in {each.cell[:2] for each in cells}
    ]
    return builder.build(definitions, sorted(cells))


def test_reports_add_up_by_version_and_over_versions() -> None:
    snapshot = build(
        SnapshotBuilder(),
        cell("page", 1, DAYS[0], 5, "DE"),
        cell("page", 1, DAYS[0], 7, "NZ"),
        cell("page", 2, DAYS[0], 100),
        cell("page", 2, DAYS[1], 1),
    )
    assert snapshot.periods("page", 1) == (PeriodCount(DAYS[0], 12),)
    assert snapshot.periods("page", None) == (PeriodCount(DAYS[0], 112), PeriodCount(DAYS[1], 1))
    assert snapshot.stored == {("page", 1), ("page", 2)}
    assert [each.dimensions for each in snapshot.slices["page", 1]] == [
        (("country", "DE"),),
        (("country", "NZ"),),
    ]


def test_only_what_changed_is_counted_again() -> None:
    builder = SnapshotBuilder()
    one = build(builder, cell("a", 1, DAYS[0], 5), cell("b", 1, DAYS[0], 5))
    two = build(builder, cell("a", 1, DAYS[0], 5), cell("b", 1, DAYS[0], 6))
    assert two.slices["a", 1] is one.slices["a", 1]
    assert two.periods("a", None) is one.periods("a", None)
    assert two.periods("b", 1) == (PeriodCount(DAYS[0], 6),)


def test_a_collection_that_is_gone_leaves_nothing_behind() -> None:
    builder = SnapshotBuilder()
    build(builder, cell("a", 1, DAYS[0], 5), cell("b", 1, DAYS[0], 5))
    after = build(builder, cell("b", 1, DAYS[0], 5))
    assert after.periods("a", None) == ()
    assert list(after.collections) == ["b"]
