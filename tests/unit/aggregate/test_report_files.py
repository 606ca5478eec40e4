"""Files to counts: every format, every way of writing it, and an account of what is malformed."""

import base64
import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from rappor import DecodeError, Params
from rappor.aggregate import Aggregated, Counts, aggregate_files, lines
from rappor.wire import pack, to_text

REFERENCE = Path(__file__).parents[2] / "vectors" / "reference" / "reports"
FOUR = Params(4, 1, 3, 0.5, 0.5, 0.75)
HEADER = b"client,cohort,rappor\n"


def aggregate(
    folder: Path, data: bytes, name: str = "reports.csv", **options: object
) -> Aggregated:
    path = folder / name
    path.write_bytes(data)
    return aggregate_files(path, FOUR, **options)


def where(found: Aggregated) -> list[int]:
    return [each.line for each in found.examples]


def expected(*reports: tuple[int, str], params: Params = FOUR) -> Counts:
    totals = np.zeros(params.m, int)
    ones = np.zeros((params.m, params.k), int)
    for cohort, text in reports:
        totals[cohort] += 1
        ones[cohort] += [int(bit) for bit in reversed(text)]
    return Counts(params, totals, ones, reports_per_client=None)


# google/rappor's own files


def test_googles_reports_give_googles_counts(engine: str) -> None:
    params = Params.from_csv(REFERENCE / "params.csv")
    found = aggregate_files(REFERENCE / "reports.csv", params)
    assert found.counts == Counts.from_csv(REFERENCE / "counts.csv", params)
    assert (found.rows, found.malformed, found.examples, found.reasons) == (5000, 0, (), {})


def test_both_forms_give_the_same_counts_and_only_irr_counts(tmp_path: Path, engine: str) -> None:
    params = Params.from_csv(REFERENCE / "params.csv")
    lines = (REFERENCE / "reports.csv").read_text().splitlines()
    fields = [line.split(",") for line in lines[1:]]
    short = "".join(f"{row[0]},{row[1]},{row[4]}\n" for row in fields)
    (tmp_path / "short.csv").write_text("client,cohort,rappor\n" + short)
    whole = Counts.from_csv(REFERENCE / "counts.csv", params)
    assert aggregate_files(tmp_path / "short.csv", params).counts == whole
    # bloom and prr are not even looked at
    blind = "".join(f"{row[0]},{row[1]},x,,{row[4]}\n" for row in fields)
    (tmp_path / "blind.csv").write_text("client,cohort,bloom,prr,irr\n" + blind)
    assert aggregate_files(tmp_path / "blind.csv", params).counts == whole


# Ways of writing CSV


@pytest.mark.parametrize(
    "data",
    [
        HEADER + b"a,2,0001\nb,0,1010\n",
        HEADER + b"a,2,0001\nb,0,1010",
        b"client,cohort,rappor\r\na,2,0001\r\nb,0,1010\r\n",
        b"\xef\xbb\xbf" + HEADER + b"a,2,0001\nb,0,1010\n\n\r\n  \t\n",
        HEADER + b"\na,2,0001\n\n\nb,0,1010\n",
        HEADER + b'"a",2,0001\n"b","0","1010"\n',
        b'"client","cohort","rappor"\n"x, ""y"" z",2,0001\n",,,",0,"1010"\r\n',
        HEADER + b"a, 2,0001 \n\tb,0\t, 1010\n",
        HEADER + b",02,0001\nit's 5\" long,00,1010\n",
        HEADER + b"\xff\xfe\x00,2,0001\n\xe2\x98\x83,0,1010\n",
        HEADER + b'"a\rb",2,0001\nb,0,1010\n',
        b"cohort,rappor\n2,0001\n0,1010\n",
        b"rappor,x,cohort,y\n0001,,2,\n1010,q,0,'z\n",
        b"irr,cohort,x\r\n0001,2,1\r\n1010,0,\r\n",
        b"cohort,bits\n2,0001\n0,1010\n",
        b" client , cohort , rappor \na,2,0001\nb,0,1010\n",
    ],
)
def test_the_ways_people_write_csv_are_read(tmp_path: Path, data: bytes, engine: str) -> None:
    found = aggregate(tmp_path, data, strict=True)
    assert found.counts == expected((2, "0001"), (0, "1010"))
    assert (found.rows, found.malformed) == (2, 0)


MALFORMED = [
    (b"a,3,0001", "the cohort is not from 0 to 2"),
    (b"a,999999999999999999999,0001", "the cohort is not a whole number"),
    (b"a,99999999999,0001", "the cohort is not from 0 to 2"),
    (b"a,-1,0001", "the cohort is not a whole number"),
    (b"a,1.0,0001", "the cohort is not a whole number"),
    (b"a,,0001", "the cohort is not a whole number"),
    (b"a,\xb2,0001", "the cohort is not a whole number"),
    (b"a,1,001", "the report has 3 bits, the params have k = 4"),
    (b"a,1,00011", "the report has 5 bits, the params have k = 4"),
    (b"a,1,", "the report has 0 bits"),
    (b"a,1,0021", "the bits are not all 0 or 1"),
    (b"a,1,0_01", "the bits are not all 0 or 1"),
    (b"a,1,+001", "the bits are not all 0 or 1"),
    (b"a,1", "2 fields where the header has 3"),
    (b"a,1,0001,", "4 fields where the header has 3"),
    (b"secret-client", "1 fields where the header has 3"),
    (b'"a,1,0001', "not a line of CSV"),
    (b'"a"b,1,0001', "not a line of CSV"),
    (b"a\rb,1,0001", "not a line of CSV"),
    (b"a" * 100_001 + b",1,0001", "a line of more than 100,000 characters"),
]


@pytest.mark.parametrize(("line", "reason"), MALFORMED)
@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_a_malformed_line_is_counted_and_named(
    tmp_path: Path, line: bytes, reason: str, newline: bytes, engine: str
) -> None:
    lines = [b"client,cohort,rappor", b"a,2,0001", b"", line, b"b,0,1010", line, b"c,0,1010"]
    data = newline.join(lines) + newline
    found = aggregate(tmp_path, data)
    assert found.counts == expected((2, "0001"), (0, "1010"), (0, "1010"))
    assert (found.rows, found.malformed, where(found)) == (3, 2, [4, 6])
    assert found.examples[0].reason.startswith(reason)
    assert list(found.reasons.values()) == [2]
    with pytest.raises(DecodeError, match=r"reports.csv, line 4: ") as caught:
        aggregate(tmp_path, data, strict=True)
    assert reason in str(caught.value)


def test_reasons_never_show_a_client_or_bits(tmp_path: Path, engine: str) -> None:
    lines = [line.replace(b"a", b"secret") for line, _ in MALFORMED] + [b"secret,1,0121"]
    found = aggregate(tmp_path, HEADER + b"\n".join(lines))
    shown = " ".join([*found.reasons, *map(str, found.examples)])
    assert found.malformed == len(lines)
    assert "secret" not in shown
    assert "0121" not in shown
    assert "0001" not in shown


@pytest.mark.slow
def test_the_first_20_are_shown_and_all_are_counted(tmp_path: Path, engine: str) -> None:
    data = HEADER + b"a,9,0001\n" * 30 + b"a,2,0001\n" + b"a,2,01\n" * 70_000
    found = aggregate(tmp_path, data)
    assert (found.rows, found.malformed) == (1, 70_030)
    assert where(found) == list(range(2, 22))
    assert sorted(found.reasons.values()) == [30, 70_000]


def test_reasons_do_not_grow_without_bound(tmp_path: Path, engine: str) -> None:
    data = HEADER + b"".join(b"a,2,%s\n" % (b"0" * n) for n in range(5, 505))
    found = aggregate(tmp_path, data)
    assert found.malformed == sum(found.reasons.values()) == 500
    assert len(found.reasons) <= 101


# Pieces, threads and line numbers


@pytest.mark.parametrize("chunk", [40, 57, 1000])
@pytest.mark.parametrize("threads", [1, 3])
def test_line_numbers_are_the_real_ones_over_many_pieces(
    tmp_path: Path, chunk: int, threads: int, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "CHUNK", chunk)
    monkeypatch.setattr(lines, "_ODD_AT_ONCE", 3)
    rng = np.random.default_rng(chunk)
    bad, reports, written = [], [], [b"client,cohort,rappor"]
    for number in range(2, 700):
        kind = int(rng.integers(0, 12))
        bits = to_text(int(rng.integers(0, 16)), 4)
        cohort = int(rng.integers(0, 3))
        if kind == 0:
            written.append(b"")
            continue
        if kind == 1 and len(bad) < 20:
            written.append(b"a,%d,012" % cohort)
            bad.append(number)
            continue
        client = b'"c, %d"' % number if kind < 4 else b"c%d" % number
        written.append(b"%s,%d,%s%s" % (client, cohort, bits.encode(), b"\r" * (kind == 5)))
        reports.append((cohort, bits))
    found = aggregate(tmp_path, b"\n".join(written), threads=threads)
    assert where(found) == bad
    assert (found.rows, found.malformed) == (len(reports), len(bad))
    assert found.counts == expected(*reports)


def test_several_files_add_up_and_keep_their_own_line_numbers(tmp_path: Path) -> None:
    first, second = tmp_path / "a.csv", tmp_path / "b.jsonl"
    first.write_bytes(HEADER + b"a,2,0001\nx\n")
    second.write_text('{"cohort": 1, "bits": "1000"}\nx\n')
    found = aggregate_files([first, second, str(first)], FOUR)
    assert found.counts == expected((2, "0001"), (1, "1000"), (2, "0001"))
    names = [(Path(each.file).name, each.line) for each in found.examples]
    assert names == [("a.csv", 3), ("b.jsonl", 2), ("a.csv", 3)]


def test_progress_sums_to_the_size_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "CHUNK", 1000)
    done: list[int] = []
    data = HEADER + b"a,2,0001\n" * 1000
    for name, content in (("r.csv", data), ("r.csv.gz", gzip.compress(data, mtime=0))):
        done.clear()
        found = aggregate(tmp_path, content, name, progress=done.append)
        assert found.rows == 1000
        assert sum(done) == len(content)


def test_labels_go_with_the_counts_and_are_checked_before_reading(tmp_path: Path) -> None:
    about = {"kind": "bits", "dialect": "google", "collection": "c", "version": 1}
    found = aggregate(tmp_path, HEADER, reports_per_client=3, **about)
    assert found.counts == Counts.zero(FOUR, reports_per_client=3, **about)
    with pytest.raises(ValueError, match="kind must be one of"):
        aggregate_files(tmp_path / "none.csv", FOUR, kind="klingon")


# JSON lines


def packed_text(text: str) -> str:
    return base64.b64encode(pack(int(text, 2), len(text))).decode()


def test_json_lines_of_every_form_are_read(tmp_path: Path, engine: str) -> None:
    lines = [
        '\ufeff{"cohort": 2, "bits": "0001"}',
        '{"bits":"1010","cohort":0,"client":"c9"}\r',
        "",
        json.dumps({"cohort": 1, "packed": packed_text("0110")}),
        '{"cohort": 1, "rappor": "0011"}',
        '{"cohort": 1, "irr": "1111", "bloom": "0000"}',
        ' { "irr"\t:"0100" , "cohort" : 2 } \r',
        '{"cohort": 0, "cohort": 1, "bits": "1000"}',
        r'{"cohort": 1, "b\u0069ts": "\u0031000"}',
    ]
    reports = [(2, "0001"), (0, "1010"), (1, "0110"), (1, "0011"), (1, "1111")]
    reports += [(2, "0100"), (1, "1000"), (1, "1000")]
    for name in ("r.jsonl", "r.ndjson"):
        found = aggregate(tmp_path, "\n".join(lines).encode(), name, strict=True)
        assert found.counts == expected(*reports)
    squeezed = gzip.compress("\n".join(lines).encode())
    assert aggregate(tmp_path, squeezed, "r.jsonl.gz").counts == expected(*reports)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not a line of JSON"),
        ("[" * 50_000, "not a line of JSON"),
        ("[1]", "not a JSON object"),
        ('{"bits": "0001"}', "the cohort is not a whole number"),
        ('{"cohort": "1", "bits": "0001"}', "the cohort is not a whole number"),
        ('{"cohort": true, "bits": "0001"}', "the cohort is not a whole number"),
        ('{"cohort": 01, "bits": "0001"}', "not a line of JSON"),
        ('{"cohort": 1, "bits": "0001"', "not a line of JSON"),
        ('{"cohort": 1, "bits": "0001",}', "not a line of JSON"),
        ('{"cohort": 1, "bits": "0001"} x', "not a line of JSON"),
        ('{"cohort": 1 "bits": "0001"}', "not a line of JSON"),
        ('{"bits": "0001", "bits": "0001"}', "the cohort is not a whole number"),
        ('{"cohort": 1.0, "bits": "0001"}', "the cohort is not a whole number"),
        ('{"cohort": 3, "bits": "0001"}', "the cohort is not from 0 to 2"),
        ('{"cohort": -1, "bits": "0001"}', "the cohort is not from 0 to 2"),
        ('{"cohort": 1}', "expected exactly one of"),
        ('{"cohort": 1, "bits": "0001", "packed": "AA=="}', "expected exactly one of"),
        ('{"cohort": 1, "bits": 1}', "bits is not a string"),
        ('{"cohort": 1, "bits": "00010"}', "the report has 5 bits"),
        ('{"cohort": 1, "bits": "000x"}', "the bits are not all 0 or 1"),
        ('{"cohort": 1, "packed": "A?=="}', "packed is not base64"),
        ('{"cohort": 1, "packed": "é"}', "packed is not base64"),
        ('{"cohort": 1, "packed": "AAA="}', "takes 1 bytes, got 2"),
        ('{"cohort": 1, "packed": "/w=="}', "padding bits 0"),
    ],
)
def test_a_malformed_json_line_is_counted_and_named(
    tmp_path: Path, line: str, reason: str, engine: str
) -> None:
    data = f'{{"cohort": 2, "bits": "0001"}}\n\n{line}\n'.encode()
    found = aggregate(tmp_path, data, "r.jsonl")
    assert (found.rows, where(found)) == (1, [3])
    assert reason in found.examples[0].reason


# Files that are none


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("r.csv", b"", "r.csv: the file is empty"),
        ("r.jsonl", b"", "r.jsonl: the file is empty"),
        ("r.csv.gz", gzip.compress(b"", mtime=0), "r.csv.gz: the file is empty"),
        ("r.csv", b"a,2,0001\n", "r.csv, line 1: expected a header with cohort and one of irr"),
        ("r.csv", b"client,cohort\n", "line 1: expected a header"),
        ("r.csv", b"cohort,cohort,irr\n", "line 1: expected a header"),
        ("r.csv", b"cohort,irr,rappor\n", "line 1: expected a header"),
        ("r.csv", "cohort,irr\n".encode("utf-16"), "line 1: expected a header"),
        ("r.csv", b"\xff\xfe\n", "line 1: expected a header"),
        ("r.csv.gz", b"not gzip", "r.csv.gz: damaged, or not a gzip file"),
        (
            "r.csv.gz",
            gzip.compress(HEADER * 99, mtime=0)[:-9],
            "r.csv.gz: damaged, or not a gzip file",
        ),
        ("r.parquet", b"PAR1 nonsense", "r.parquet: damaged, or not a Parquet file"),
        ("r.txt", b"x", r"r.txt: expected a name that ends in .csv, .csv.gz, .jsonl"),
    ],
)
def test_a_file_that_is_none_is_refused(
    tmp_path: Path, name: str, data: bytes, message: str
) -> None:
    with pytest.raises(DecodeError, match=message) as caught:
        aggregate(tmp_path, data, name)
    assert "0001" not in str(caught.value)


def test_a_missing_file_is_noticed_before_others_are_read(tmp_path: Path) -> None:
    done: list[int] = []
    (tmp_path / "a.csv").write_bytes(HEADER + b"a,2,0001\n")
    with pytest.raises(FileNotFoundError, match=r"none\.csv"):
        aggregate_files([tmp_path / "a.csv", tmp_path / "none.csv"], FOUR, progress=done.append)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(IsADirectoryError, match=r"folder\.csv"):
        aggregate_files([tmp_path / "a.csv", tmp_path / "folder.csv"], FOUR, progress=done.append)
    assert done == []


def test_a_header_alone_is_zero_reports(tmp_path: Path) -> None:
    found = aggregate(tmp_path, HEADER)
    assert found.counts == Counts.zero(FOUR, reports_per_client=None)
    assert (found.rows, found.malformed) == (0, 0)


def test_a_line_without_end_does_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "CHUNK", 2**20)
    with pytest.raises(DecodeError, match="a line of more than 1 MB"):
        aggregate(tmp_path, HEADER + b"x" * 3 * 2**20)
