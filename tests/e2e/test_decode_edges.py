"""`rappor decode` at the edges: small, empty, wrong and odd input, each with one clear answer.

In this process, where warnings are errors; tests/e2e/test_decode_cli.py runs real ones.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from rappor import Counts, Params, simulate
from rappor.cli.main import main
from rappor.cli.output import Ticker

WINDOWS = Path(__file__).parents[1] / "vectors" / "reference" / "windows" / "1"
FILES = ("--params", str(WINDOWS / "params.csv"), "--counts", str(WINDOWS / "counts.csv"))
MAP = ("--map", str(WINDOWS / "map.csv"))
LIST = ("--candidates", str(WINDOWS / "candidates.txt"), "--dialect", "google")
FOUR = ("--k", "4", "--h", "1", "--m", "1", "--f", "0", "--p", ".25", "--q", ".75")
ONE = ("--k", "1", "--h", "1", "--m", "1", "--f", ".5", "--p", ".25", "--q", ".75")


class Done(NamedTuple):
    """What a run gave back."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> dict[str, Any]:
        """The rows of a JSON document by string."""
        return {row["string"]: row for row in json.loads(self.out)["rows"]}

    @property
    def estimates(self) -> dict[str, float]:
        """The raw estimates in it by string."""
        return {name: row["raw_estimate"] for name, row in self.rows.items()}


Run = Callable[..., Done]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    def decode(*arguments: str | Path) -> Done:
        monkeypatch.setattr(sys, "argv", ["rappor"])
        try:
            code = main(["decode", *map(str, arguments)])
        except SystemExit as stop:
            code = int(stop.code or 0)
        found = capsys.readouterr()
        assert "Traceback" not in found.err
        return Done(code, found.out, found.err)

    return decode


@pytest.fixture
def counts(tmp_path: Path) -> Callable[..., Path]:
    """A counts.csv with these rows."""

    def write(*rows: str, name: str = "counts.csv") -> Path:
        (tmp_path / name).write_text("".join(f"{row}\n" for row in rows))
        return tmp_path / name

    return write


def changed(tmp_path: Path, cohort: int, row: str) -> Path:
    """The counts of the reference set with another row for one cohort."""
    rows = (WINDOWS / "counts.csv").read_text().splitlines()
    rows[cohort] = row
    (tmp_path / "counts.csv").write_text("\n".join(rows))
    return tmp_path / "counts.csv"


# Kinds other than strings.

TOO_FEW = (
    "Too few reports: a share of 5 % needs about 4,240; there are 1,000, which show only shares "
    "above 10 %."
)


def test_categories_are_all_shown_with_those_that_are_not_detected(
    run: Run, counts: Callable[..., Path]
) -> None:
    file = counts("1000,300,500,420,260")
    done = run("--counts", file, *FOUR, "--categories", "a,b,c", "--json")
    assert (done.code, done.err) == (0, "")
    assert done.estimates == {
        "a": 100.0,
        "b": 500.0,
        "c": 340.0,
    }
    done = run("--counts", file, *FOUR, "--kind", "category", "--categories", "a,b,c,d")
    assert done.out.splitlines()[0].split()[0] == "category"
    assert done.out.splitlines()[4].split()[-1] == "no"


def test_names_of_categories_may_come_from_a_file_in_the_order_of_bits(
    run: Run, counts: Callable[..., Path], tmp_path: Path
) -> None:
    (tmp_path / "names.txt").write_text("z\ny\nx\n")
    file = counts("1000,300,500,420,260")
    done = run(
        "--counts",
        file,
        *FOUR,
        "--kind",
        "category",
        "--json",
        "--candidates",
        tmp_path / "names.txt",
    )
    assert done.estimates == {
        "z": 100.0,
        "y": 500.0,
        "x": 340.0,
    }


def test_a_boolean_of_one_bit_has_two_rows(run: Run, counts: Callable[..., Path]) -> None:
    file = counts("1000,500")
    done = run("--counts", file, *ONE, "--kind", "boolean", "--reports-per-client", "1", "--json")
    assert (done.code, done.err) == (0, f"note: {TOO_FEW}\n")
    assert done.estimates == {
        "true": 500.0,
        "false": 500.0,
    }


def test_a_table_of_too_few_reports_says_so_once_before_its_rows(
    run: Run, counts: Callable[..., Path]
) -> None:
    file = counts("1000,500")
    boolean = (*ONE, "--kind", "boolean", "--reports-per-client", "1")
    done = run("--counts", file, *boolean)
    first, gap, head = done.out.splitlines()[:3]
    assert (first, gap, head.split()[0]) == (TOO_FEW, "", "value")
    assert done.err == ""
    done = run("--counts", counts("100000,50000", name="many.csv"), *boolean)
    assert done.out.splitlines()[0].split()[0] == "value"


def test_a_histogram_has_rows_in_order_a_mean_and_quantiles(
    run: Run, counts: Callable[..., Path]
) -> None:
    file = counts("1000,300,500,420,260")
    done = run("--counts", file, *FOUR, "--edges", "1,2,3", "--json")
    facts = json.loads(done.out)
    assert [row["string"] for row in facts["rows"]] == ["< 1", "1 to < 2", "2 to < 3", ">= 3"]
    assert sum(row["raw_estimate"] for row in facts["rows"]) == pytest.approx(1000)
    assert facts["mean"] is None  # the outer ranges have no end
    median = next(each for each in facts["quantiles"] if each["probability"] == 0.5)
    assert (median["label"], median["low_95"], median["high_95"]) == ("1 to < 2", 1, 2)
    assert facts["quantiles"][0]["low_95"] == "-inf"
    shown = run("--counts", file, *FOUR, "--edges", "1,2,3").out
    assert "quantile  lies in" in shown


@pytest.mark.parametrize("kind", ["category", "bits", "ordinal"])
def test_kinds_without_reports_say_so(kind: str, run: Run, counts: Callable[..., Path]) -> None:
    names = ("--categories", "a,b") if kind == "category" else ()
    file = counts("0,0,0,0,0")
    done = run("--counts", file, *FOUR, "--kind", kind, *names, "--exit-code", "--json")
    assert done.code == 4
    assert "no reports" in done.err
    assert all(row["estimate"] == 0 and row["snr"] is None for row in done.rows.values())


# Counts that are small, empty or impossible.


def test_an_empty_cohort_is_left_out_and_named(run: Run, tmp_path: Path) -> None:
    file = changed(tmp_path, 3, ",".join(["0"] * 129))
    done = run("--preset", "windows", "--counts", file, *MAP)
    assert done.code == 0
    assert "PROC002.EXE" in done.out
    assert "note: 1 of 8 cohorts have no reports and were left out." in done.err


@pytest.mark.parametrize("ones", [0, 1])
def test_a_cohort_of_one_report_is_no_trouble(ones: int, run: Run, tmp_path: Path) -> None:
    file = changed(tmp_path, 0, ",".join(["1", *([str(ones)] * 128)]))
    done = run("--preset", "windows", "--counts", file, *MAP)
    assert done.code == 0
    assert "PROC002.EXE" in done.out


def test_without_reports_nothing_can_be_said(run: Run, counts: Callable[..., Path]) -> None:
    file = counts(*[",".join(["0"] * 129)] * 8)
    done = run("--preset", "windows", "--counts", file, *LIST, "--json", "--all")
    assert (done.code, len(done.rows)) == (0, 500)
    assert json.loads(done.out)["threshold"] == "inf"
    assert json.loads(done.out)["chi2_dof"] is None
    assert "note: There are no reports: nothing can be said." in done.err


@pytest.mark.parametrize("reports", [1, 1000, 10**9])
def test_counts_of_nothing_but_zeros_do_not_belong_to_the_parameters(
    reports: int, run: Run, counts: Callable[..., Path]
) -> None:
    file = counts(*[",".join([str(reports), *["0"] * 128])] * 8)
    done = run("--preset", "windows", "--counts", file, *LIST)
    assert (done.code, done.out.splitlines()[0]) == (
        *(0, "Nothing was detected among 500 candidates."),
    )
    assert "the counts do not belong to these parameters" in done.err


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["10,11,0,0,0"], "line 1: cohort 0 has 10 reports, but bit 0 is set in 11 of them"),
        (["10,1,1,1"], "counts of another k?"),
        (["10,1,1,1,1", "10,1,1,1,1"], "counts of another m?"),
        (["10,1,1,1,x"], "line 1, column 5: expected a whole number"),
        (["N,a,b,c,d", "10,1,1,1,1"], "and no header"),
        ([], "found 0"),
    ],
)
def test_bad_counts_are_one_line_and_exit_code_3(
    rows: list[str], message: str, run: Run, counts: Callable[..., Path], tmp_path: Path
) -> None:
    (tmp_path / "list.txt").write_text("a\n")
    done = run("--counts", counts(*rows), *FOUR, "--candidates", tmp_path / "list.txt")
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith("rappor decode: ")
    assert message in done.err
    assert done.err.count("\n") == 1


# Candidates and maps.


def test_a_map_of_another_k_is_refused_with_its_line(run: Run, tmp_path: Path) -> None:
    rows = (WINDOWS / "map.csv").read_text().splitlines()
    string, *cells = rows[0].split(",")
    moved = [str((int(cell) - 1) // 128 * 256 + (int(cell) - 1) % 128 + 1) for cell in cells]
    (tmp_path / "map.csv").write_text("\n".join([",".join([string, *moved]), *rows[1:]]))
    done = run(*FILES, "--map", tmp_path / "map.csv")
    assert (done.code, done.out) == (3, "")
    assert "map.csv, line 1: position" in done.err
    assert "is the map of another k, h or m?" in done.err
    assert done.err.count("\n") == 1


def test_a_list_with_blank_lines_a_mark_and_windows_line_ends_decodes_the_same(
    run: Run, tmp_path: Path
) -> None:
    lines = (WINDOWS / "candidates.txt").read_bytes().splitlines()
    odd = b"\xef\xbb\xbf" + b"\r\n\r\n".join(lines) + b"\r\n"
    (tmp_path / "odd.txt").write_bytes(odd)
    quoted = b"string\r\n" + b"".join(b'"%s"\r\n' % line for line in lines)
    (tmp_path / "quoted.csv").write_bytes(quoted)
    expected = run(*FILES, *LIST).out
    done = run(*FILES, "--dialect", "google", "--candidates", tmp_path / "odd.txt")
    assert done.out == expected
    assert "note: 499 blank lines were skipped" in done.err
    done = run(*FILES, "--dialect", "google", "--candidates", tmp_path / "quoted.csv")
    assert done.out == expected


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "list.txt: no candidates: give at least one string to look for"),
        (b"\n\n", "list.txt: no candidates: give at least one string to look for"),
        (b"a\n\xff\n", "list.txt, line 2: not UTF-8 text; save the file as UTF-8"),
    ],
)
def test_bad_candidates_are_one_line_and_exit_code_3(
    data: bytes, message: str, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "list.txt").write_bytes(data)
    done = run(*FILES, "--dialect", "google", "--candidates", tmp_path / "list.txt")
    assert (done.code, done.out) == (3, "")
    assert done.err.endswith(f"{message}\n")
    assert done.err.count("\n") == 1


def test_a_map_with_a_dialect_is_checked_against_it(run: Run) -> None:
    done = run(*FILES, *MAP, "--dialect", "google", "--json")
    assert (done.code, json.loads(done.out)["dialect"]) == (0, "google")
    done = run(*FILES, *MAP, "--dialect", "chromium")
    assert done.code == 3
    assert "does not place 'PROC001.EXE' as dialect chromium does" in done.err


def test_the_wrong_dialect_is_suspected_where_nothing_fits(run: Run) -> None:
    done = run(*FILES, "--candidates", WINDOWS / "candidates.txt")
    assert done.out.startswith("Nothing was detected among 500 candidates.")
    assert "note: no --dialect was given: candidates were placed as rappor-v1 does" in done.err
    assert "is the dialect (rappor-v1) that of the clients" in done.err


# Several counts.


@pytest.fixture
def periods(tmp_path: Path) -> list[Path]:
    """Two days of one collection, in files that carry all that belongs to them."""
    files = []
    for day in (1, 2):
        found = simulate.counts({"a": 3.0, "b": 1.0}, Params.preset("windows"), 10**5, seed=day)
        files.append(tmp_path / f"day{day}.parquet")
        found.to_parquet(files[-1])
    (tmp_path / "list.txt").write_text("a\nb\nc\n")
    return files


def test_periods_are_added_up_only_when_asked_for(run: Run, periods: list[Path]) -> None:
    one, two = periods
    looked_for = ("--candidates", one.parent / "list.txt")
    both = ("--counts", one, "--counts", two, *looked_for)
    done = run(*both)
    assert (done.code, "give --sum-periods" in done.err) == (2, True)
    done = run(*both, "--sum-periods", "--json")
    assert done.code == 0
    assert set(done.rows) == {"a", "b"}
    assert json.loads(done.out)["reports"] == 2 * 10**5
    assert json.loads(done.out)["reports_per_client"] == 2
    done = run("--counts", one, *looked_for, "--reports-per-client", "5", "--diagnose")
    assert "OK: One client may have sent up to 5 reports on one value" in done.out


def test_counts_of_several_p_and_q_are_decoded_together(run: Run, tmp_path: Path) -> None:
    files: list[str | Path] = []
    for number, p in enumerate((0.5, 0.25)):
        params = Params(128, 2, 8, 0.5, p, 0.75)
        counts = simulate.counts({"a": 3.0, "b": 1.0}, params, 10**5, seed=number)
        counts.to_npz(tmp_path / f"{number}.npz")
        files += ["--counts", tmp_path / f"{number}.npz"]
    (tmp_path / "list.txt").write_text("a\nb\nc\n")
    done = run(*files, "--candidates", tmp_path / "list.txt", "--json")
    assert done.code == 0
    assert json.loads(done.out)["reports"] == 2 * 10**5
    assert done.rows["a"]["proportion"] == pytest.approx(0.75, abs=0.05)


def test_what_a_file_says_of_itself_must_agree_with_the_options(
    run: Run, periods: list[Path]
) -> None:
    base = ("--counts", periods[0], "--candidates", periods[0].parent / "list.txt")
    for options, message in (
        (("--preset", "chrome"), "has parameters of its own, which are not those given"),
        (("--kind", "bits"), "says kind string, the command says bits"),
        (("--dialect", "google"), "says dialect rappor-v1, the command says google"),
    ):
        done = run(*base, *options)
        assert (done.code, message in done.err) == (3, True)
    assert run(*base, "--preset", "windows", "--dialect", "rappor-v1").code == 0


# Wrong use.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (FILES, "strings are decoded against a list: give --candidates or --map"),
        ((*FILES, *MAP, *LIST[:2]), "give --candidates or --map, not both"),
        ((*FILES[2:], *MAP), "give --preset"),
        ((*FILES[:2], *MAP), "the following arguments are required: --counts"),
        ((*FILES, *MAP, "--preset", "windows"), "give only one of --preset, --params"),
        ((*FILES, *MAP, "--alpha", "1"), "'1' is not a number between 0 and 1"),
        ((*FILES, *MAP, "--correction", "sidak"), "invalid choice: 'sidak'"),
        ((*FILES, *MAP, "--edges", "1,2"), "--map does not go with counts of kind ordinal"),
        ((*FILES, *MAP, "--kind", "string", "--edges", "1"), "--edges does not go with"),
        ((*FILES, "--kind", "category"), "give --categories A,B,C"),
        ((*FILES, "--kind", "bits", "--method", "lasso"), "--method does not go with"),
        ((*FILES, *MAP, "--output", "results.txt"), "--output must end in .csv, .json, .parquet"),
        ((*FILES, *MAP, "--plot", "plot.gif"), "--plot must end in .svg, .png, .html, .json"),
        ((*FILES, *MAP, "--output", MAP[1]), "is also another file of this command"),
        ((*FILES, *MAP, "--output", "-", "--json"), "both print"),
        ((*FILES, *MAP, "--outptu", "x.csv"), "did you mean --output?"),
    ],
)
def test_wrong_use_is_a_message_and_exit_code_2(
    arguments: tuple[str, ...], message: str, run: Run
) -> None:
    done = run(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("rappor decode: ")
    assert message in done.err


def test_files_and_folders_that_are_not_there_are_invalid_input(run: Run, tmp_path: Path) -> None:
    for arguments in (
        (*FILES, "--map", tmp_path / "none.csv"),
        (*FILES, "--candidates", tmp_path / "none.txt"),
        (*FILES[:2], "--counts", tmp_path / "none.csv", *MAP),
        (*FILES, *MAP, "--output", tmp_path / "none" / "results.csv"),
    ):
        done = run(*arguments)
        assert (done.code, done.out, done.err.count("\n")) == (3, "", 1)
        assert "no such file or folder" in done.err or "its folder does not exist" in done.err


# What it loads, and what it shows while it works.


def test_help_loads_nothing_that_an_extra_brings() -> None:
    code = "import sys; from rappor.cli.main import main\n"
    code += "try: main(['decode', '--help'])\nexcept SystemExit: pass\n"
    code += "sys.exit(any(name in sys.modules for name in ('numpy', 'scipy', 'pyarrow', 'tqdm')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0
    assert b"--reports-per-client" in done.stdout


def test_without_the_extra_it_says_what_to_install() -> None:
    source = Path(__import__("rappor").__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-S", "-m", "rappor", "decode", *FILES, *MAP],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(source)},
        timeout=300,
        check=False,
    )
    assert done.returncode == 1
    assert "rappor.decode needs the 'analysis' extra: pip install 'rappor[analysis]'" in done.stderr


def test_long_work_shows_one_line_on_a_terminal_and_wipes_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ticker() as tick:
        tick("not a terminal")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with Ticker() as tick:
        tick("too soon")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(Ticker, "_AFTER", 0.0)
    with Ticker() as tick:
        tick("step 1")
    assert capsys.readouterr().err == "\r\x1b[Kstep 1\r\x1b[K"


def test_numbers_of_the_library_and_the_command_agree(run: Run) -> None:
    from rappor import decode

    params = Params.from_csv(WINDOWS / "params.csv")
    counts = Counts.from_csv(WINDOWS / "counts.csv", params)
    found = decode(counts, WINDOWS / "candidates.txt", dialect="google", correction="holm")
    rows = run(*FILES, *LIST, "--correction", "holm", "--json").rows
    assert list(rows) == [row.string for row in found.detected]
    assert np.array_equal(
        [row["estimate"] for row in rows.values()], [row.estimate for row in found.detected]
    )


@pytest.mark.parametrize(
    "arguments",
    [(*FILES, *MAP), (*FILES[2:], *FILES[:2], "--kind", "bits")],
    ids=["string", "bits"],
)
def test_a_diagnosis_follows_the_table_or_is_in_the_json(
    arguments: tuple[str, ...], run: Run
) -> None:
    plain, done = run(*arguments), run(*arguments, "--diagnose")
    assert done.code == 0
    assert done.out.startswith(plain.out)
    said = json.loads(run(*arguments, "--diagnose", "--json").out)["diagnosis"]
    assert said
    assert done.out.removeprefix(plain.out).splitlines() == ["", *said]
