"""Reports in Parquet: text and packed, every type that holds them, and rows that are none."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rappor import DecodeError, Params
from rappor.aggregate import Aggregated, aggregate_files, count, read_parquet
from rappor.wire import pack, to_text

NINE = Params(9, 1, 3, 0.5, 0.5, 0.75)
RNG = np.random.default_rng(4)
COHORTS = RNG.integers(0, 3, 1000)
BITS = RNG.integers(0, 512, 1000).tolist()
TEXTS = [to_text(bits, 9) for bits in BITS]
PACKED = [pack(bits, 9) for bits in BITS]
EXPECTED = count(b"".join(PACKED), COHORTS, NINE)


def aggregate(folder: Path, columns: dict[str, Any], **options: Any) -> Aggregated:
    pq.write_table(pa.table(columns), folder / "r.parquet", **options)
    return aggregate_files(folder / "r.parquet", NINE)


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("bits", pa.array(TEXTS)),
        ("bits", pa.array(TEXTS, pa.large_string())),
        ("bits", pa.array(TEXTS).dictionary_encode()),
        ("rappor", pa.array(TEXTS)),
        ("irr", pa.array(TEXTS)),
        ("rappor", pa.array(PACKED)),
        ("packed", pa.array(PACKED)),
        ("packed", pa.array(PACKED, pa.binary(2))),
        ("packed", pa.array(PACKED, pa.large_binary())),
    ],
    ids=lambda value: str(getattr(value, "type", value)),
)
def test_every_type_that_holds_reports_is_read(tmp_path: Path, name: str, column: Any) -> None:
    found = aggregate(tmp_path, {"client": ["c"] * 1000, name: column, "cohort": COHORTS})
    assert found.counts == EXPECTED
    assert (found.rows, found.malformed) == (1000, 0)


@pytest.mark.parametrize("kind", [pa.uint8(), pa.int32(), pa.uint64()])
def test_every_integer_holds_cohorts(tmp_path: Path, kind: Any) -> None:
    found = aggregate(tmp_path, {"cohort": pa.array(COHORTS, kind), "bits": TEXTS})
    assert found.counts == EXPECTED


def test_row_numbers_go_on_over_row_groups_and_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_parquet, "_BYTES_AT_ONCE", 9 * 64)
    texts: list[str | None] = list(TEXTS)
    cohorts: list[int | None] = COHORTS.tolist()
    texts[99], texts[500], texts[998] = "0" * 8, None, "00000000x"
    cohorts[150], cohorts[700] = None, 3
    found = aggregate(tmp_path, {"cohort": cohorts, "bits": texts}, row_group_size=300)
    assert [(each.line, each.reason.partition(" (")[0]) for each in found.examples] == [
        (100, "the report has 8 bits, the params have k = 9"),
        (151, "the cohort is not from 0 to 2"),
        (501, "the report is missing"),
        (701, "the cohort is not from 0 to 2"),
        (999, "the bits are not all 0 or 1"),
    ]
    assert (found.rows, found.malformed) == (995, 5)
    kept = [i for i in range(1000) if i not in (99, 150, 500, 700, 998)]
    good = count(b"".join(PACKED[i] for i in kept), COHORTS[kept], NINE)
    assert found.counts == good


def test_packed_rows_that_are_no_reports_are_named(tmp_path: Path) -> None:
    rows: list[bytes | None] = [b"\1\0", b"\1", b"\1\2", None, b"\1\1", b"abc"]
    found = aggregate(tmp_path, {"cohort": [0, 0, 0, 0, 2**40, 0], "packed": rows})
    assert [(each.line, each.reason.partition(" (")[0]) for each in found.examples] == [
        (2, "a report of 9 bits takes 2 bytes, got 1"),
        (3, "a report of 9 bits must leave its padding bits 0"),
        (4, "the report is missing"),
        (5, "the cohort is not from 0 to 2"),
        (6, "a report of 9 bits takes 2 bytes, got 3"),
    ]
    assert found.rows == 1


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"cohort": [1]}, "expected the column cohort and one of irr, rappor, bits, packed"),
        ({"bits": ["0" * 9]}, "expected the column cohort"),
        ({"cohort": [1], "bits": ["0" * 9], "packed": [b"\0\0"]}, "and one of"),
        ({"cohort": [1.0], "bits": ["0" * 9]}, "cohort must hold whole numbers"),
        ({"cohort": [1], "bits": [9]}, "bits must hold text or binary"),
    ],
)
def test_other_columns_are_refused(tmp_path: Path, columns: dict[str, Any], message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        aggregate(tmp_path, columns)


def test_no_rows_are_no_reports(tmp_path: Path) -> None:
    columns = {"cohort": pa.array([], pa.int64()), "bits": pa.array([], pa.string())}
    assert aggregate(tmp_path, columns).rows == 0
