"""`rappor aggregate` as a person meets it: real processes, real files, exit codes, memory."""

import csv
import gzip
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rappor import Params
from rappor.aggregate import Counts
from support.command import COMMAND, environment, rappor

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "tests" / "vectors" / "reference" / "reports"
REPORTS, PARAMS = REFERENCE / "reports.csv", REFERENCE / "params.csv"
GOOGLE = Params.from_csv(PARAMS)
EXPECTED = Counts.from_csv(REFERENCE / "counts.csv", GOOGLE)
SIX = ("--k", "4", "--h", "1", "--m", "3", "--f", ".5", "--p", ".5", "--q", ".75")
HEADER = "client,cohort,rappor\n"


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    """Two reports, and three lines that are none."""
    path = tmp_path / "reports.csv"
    path.write_text(HEADER + "secret-a,2,0001\nx\nb,3,0001\nb,0,1010\nc,9,0001\n")
    return path


def test_googles_reports_become_googles_counts(tmp_path: Path) -> None:
    output = tmp_path / "counts.csv"
    done = rappor("aggregate", REPORTS, "--params", PARAMS, "--output", output)
    assert (done.returncode, done.stdout) == (0, "")
    assert re.fullmatch(r"5,000 reports, [\d,]+ a second; 0 malformed\n", done.stderr)
    assert output.read_text() == (REFERENCE / "counts.csv").read_text()


@pytest.mark.parametrize("form", ["csv", "parquet", "npz"])
def test_the_end_of_the_name_decides_the_format(tmp_path: Path, form: str) -> None:
    output = tmp_path / f"counts.{form}"
    labels = ("--kind", "bits", "--dialect", "google", "--reports-per-client", "1e1")
    done = rappor("aggregate", REPORTS, "--params", PARAMS, *labels, "--output", output)
    assert done.returncode == 0
    about = {"kind": "bits", "dialect": "google", "reports_per_client": 10}
    if form == "csv":
        found = Counts.from_csv(output, GOOGLE, **about)
    else:
        found = getattr(Counts, f"from_{form}")(output)
    assert found == Counts(GOOGLE, EXPECTED.totals, EXPECTED.ones, **about)


@pytest.mark.parametrize("output", [(), ("--output", "-")])
def test_without_a_file_the_counts_go_to_standard_output(
    output: tuple[str, ...], tmp_path: Path
) -> None:
    again = tmp_path / "again.csv"
    again.write_bytes(REPORTS.read_bytes())
    done = rappor("aggregate", REPORTS, again, "--params", PARAMS, *output)
    assert done.returncode == 0
    (tmp_path / "counts.csv").write_text(done.stdout)
    assert Counts.from_csv(tmp_path / "counts.csv", GOOGLE) == EXPECTED + EXPECTED


def test_json_has_the_counts_or_says_where_they_are(reports: Path, tmp_path: Path) -> None:
    done = rappor("aggregate", reports, *SIX, "--json")
    facts = json.loads(done.stdout)
    assert (done.returncode, facts["reports"], facts["malformed"]) == (0, 2, 3)
    assert (facts["totals"], facts["ones"][2]) == ([1, 0, 1], [1, 0, 0, 0])
    assert [each["line"] for each in facts["examples"]] == [3, 4, 6]
    assert facts["params"]["k"] == 4
    output = tmp_path / "counts.csv"
    facts = json.loads(rappor("aggregate", reports, *SIX, "--json", "--output", output).stdout)
    assert facts["output"] == str(output)
    assert "ones" not in facts
    assert output.read_text().splitlines()[2] == "1,1,0,0,0"


def test_what_encode_prints_can_be_aggregated(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(bytes(range(32)))
    options = ("--preset", "windows", "--secret-file", tmp_path / "secret", "a", "b", "c")
    for name, extra in (("r.csv", ()), ("r.jsonl", ("--json",))):
        (tmp_path / name).write_text(rappor("encode", *options, *extra).stdout)
        done = rappor("aggregate", tmp_path / name, "--preset", "windows", "--json")
        assert (done.returncode, json.loads(done.stdout)["reports"]) == (0, 3)


def test_malformed_lines_are_named_once_for_each_reason(reports: Path) -> None:
    done = rappor("aggregate", reports, *SIX)
    assert done.returncode == 0
    assert done.stdout.splitlines() == ["1,0,1,0,1", "0,0,0,0,0", "1,1,0,0,0"]
    *complaints, outcome = done.stderr.splitlines()
    assert complaints == [
        f"malformed, 1 x: 1 fields where the header has 3 ({reports}:3)",
        "malformed, 2 x: the cohort is not from 0 to 2 (params of another collection?) "
        f"({reports}:4, {reports}:6)",
    ]
    assert re.fullmatch(r"2 reports, [\d,]+ a second; 3 malformed \(line 3, 4, 6\)", outcome)


def test_strict_stops_at_the_first_malformed_line(reports: Path, tmp_path: Path) -> None:
    output = tmp_path / "counts.csv"
    done = rappor("aggregate", reports, *SIX, "--strict", "--output", output)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == (
        f"rappor aggregate: {reports}, line 3: 1 fields where the header has 3\n"
    )
    assert not output.exists()


def test_reports_of_another_k_are_said_once() -> None:
    done = rappor("aggregate", REPORTS, "--preset", "windows")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.count("\n") == 1
    assert "the report has 32 bits, the params have k = 128" in done.stderr
    assert "5,000 lines" in done.stderr


@pytest.mark.parametrize(
    ("name", "content", "code", "message"),
    [
        ("none.csv", None, 3, "none.csv: no such file or folder; check the path"),
        ("empty.csv", "", 3, "empty.csv: the file is empty"),
        ("bare.csv", "secret,2,0001\n", 3, "bare.csv, line 1: expected a header"),
        ("far.csv", HEADER + "a,3,0001\n", 3, "the cohort is not from 0 to 2"),
        ("what.txt", "x", 3, "what.txt: expected a name that ends in .csv"),
        ("header.csv", HEADER, 0, "0 reports"),
    ],
)
def test_bad_input_has_one_clear_line_and_its_exit_code(
    tmp_path: Path, name: str, content: str | None, code: int, message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    done = rappor("aggregate", tmp_path / name, *SIX)
    assert done.returncode == code
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    assert "secret" not in done.stderr


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ((), 2, "give --preset"),
        ((*SIX, "--output", "counts.txt"), 2, "--output must end in .csv, .parquet, .npz"),
        ((*SIX, "--output", "none/counts.csv"), 3, "none/counts.csv: its folder does not exist"),
        ((*SIX, "--dialect", "klingon"), 2, "invalid choice"),
        ((*SIX, "--reports-per-client", "0"), 2, "not a whole number of at least 1"),
        ((*SIX, "--engine", "spark"), 1, "needs the 'spark' extra"),
    ],
)
def test_bad_options_are_refused(
    reports: Path, options: tuple[str, ...], code: int, message: str
) -> None:
    done = rappor("aggregate", reports, *options)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr


def test_reports_are_never_overwritten_by_counts(reports: Path) -> None:
    before = reports.read_bytes()
    done = rappor("aggregate", reports, *SIX, "--output", reports.parent / "." / reports.name)
    assert done.returncode == 2
    assert "is also an input file" in done.stderr
    assert reports.read_bytes() == before


def test_help_loads_no_library() -> None:
    code = """
import sys
from rappor.cli.main import build_parser
build_parser().format_help()
print({"numpy", "numba", "pyarrow", "tqdm", "rappor.aggregate"} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_without_the_analysis_extra_it_says_what_to_install(reports: Path) -> None:
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'src')!r})\n"
    code += "from rappor.cli.main import main; sys.exit(main())"
    bare = [sys.executable, "-I", "-S", "-c", code, "aggregate", str(reports), *SIX]
    done = subprocess.run(bare, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == (
        "rappor aggregate: rappor.aggregate needs the 'analysis' extra: "
        "pip install 'rappor[analysis]'; in a clone of rappor, pip install --require-hashes "
        "-r constraints-demo.txt installs the releases that are tested\n"
    )


@pytest.mark.long
@pytest.mark.skipif(os.name != "posix", reason="a terminal for standard error needs a pty")
def test_progress_on_a_terminal_leaves_the_result_as_it_is() -> None:
    import pty

    ours, theirs = pty.openpty()
    command = [*COMMAND, "aggregate", str(REPORTS), "--params", str(PARAMS)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=theirs, env=environment()
    ) as process:
        assert process.stdout is not None
        printed = process.stdout.read().decode()
    os.close(theirs)
    shown = os.read(ours, 65536).decode()
    os.close(ours)
    assert process.returncode == 0
    assert printed == (REFERENCE / "counts.csv").read_text()
    assert "5,000 reports" in shown


# The most memory that was ever used, after each file.
MEMORY = """
import resource, sys
from rappor import Params
from rappor.aggregate import aggregate_files
for path in sys.argv[1:]:
    found = aggregate_files(path, Params.preset("windows"), threads=2)
    print(found.rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts ru_maxrss in KiB")
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """59 MB more of reports, and no more of them in memory: reading them all would show."""
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 2, (10_000, 128), np.uint8) + 48
    block = b"".join(b"client-%d,%d,%s\n" % (i, i % 8, row.tobytes()) for i, row in enumerate(bits))
    blocks = {"small.csv": 20, "large.csv": 60}
    for name, number in blocks.items():
        with (tmp_path / name).open("wb") as file:
            file.write(HEADER.encode())
            for _ in range(number):
                file.write(block)
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, *(tmp_path / name for name in blocks)],
        capture_output=True,
        text=True,
        check=True,
    )
    rows, kilobytes = np.array(done.stdout.split(), int).reshape(2, 2).T
    assert rows.tolist() == [10_000 * number for number in blocks.values()]
    small, large = kilobytes / 1024
    assert large - small < 25, f"{small:.0f} MB became {large:.0f} MB"


@pytest.mark.parametrize("again", ["reports.csv", "./reports.csv", "link.csv"])
def test_a_file_that_is_given_twice_is_refused(again: str, tmp_path: Path) -> None:
    (tmp_path / "reports.csv").write_bytes(REPORTS.read_bytes())
    (tmp_path / "link.csv").symlink_to("reports.csv")
    done = rappor("aggregate", "reports.csv", again, "--params", PARAMS, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{again} is given twice" in done.stderr


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("lines", [False, True])
def test_reports_are_read_from_standard_input(packed: bool, lines: bool) -> None:
    data = REPORTS.read_bytes()
    if lines:
        rows = csv.DictReader(io.StringIO(data.decode()))
        dumped = (
            json.dumps({"cohort": int(row["cohort"]), "bits": row.get("irr") or row["rappor"]})
            for row in rows
        )
        data = "\n".join(dumped).encode()
    piped = rappor(
        "aggregate", "-", "--params", PARAMS, stdin=gzip.compress(data) if packed else data
    )
    assert piped.returncode == 0, piped.stderr
    assert piped.stdout == rappor("aggregate", REPORTS, "--params", PARAMS).stdout


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "standard input: the file is empty"),
        (b"PAR1 and more", "standard input: Parquet cannot be read from a pipe"),
        (b"\x1f\x8b damaged", "standard input: damaged, or not a gzip file"),
        (b"hello\n", "standard input, line 1: expected a header"),
    ],
)
def test_bad_standard_input_is_named(data: bytes, words: str) -> None:
    done = rappor("aggregate", "-", "--params", PARAMS, stdin=data)
    assert (done.returncode, done.stdout) == (3, "")
    assert words in done.stderr
