"""`rappor decode` in real processes: google/rappor's own files, their truth, what is printed."""

import csv
import io
import json
import math
import random
import re
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import false_discovery_control

from rappor import Counts, Params, Ranges, smooth
from rappor import decode as library_decode
from support.command import rappor

REFERENCE = Path(__file__).parents[1] / "vectors" / "reference"
WINDOWS = REFERENCE / "windows" / "1"
STRICT = {"PYTHONWARNINGS": "error"}
GOOGLE = [
    "string",
    "estimate",
    "std_error",
    "proportion",
    "prop_std_error",
    "prop_low_95",
    "prop_high_95",
]
OURS = [
    *("p_value", "adjusted_p_value", "snr", "raw_estimate", "presence_only"),
    *("forged_to_make_up", "forged_to_hide"),
]
FACTS = [
    *(
        "reports",
        "candidates",
        "cohorts",
        "detected",
        "rows",
        "undetected_mass",
        "chi2_dof",
        "scale",
    ),
    *("design_effect", "robust", "groups", "untestable", "warnings", "notes"),
    *("reports_per_client", "params_digest", "kind"),
    *("dialect", "correction", "alpha", "method", "threshold", "forged_to_detect", "checks"),
]


WORDS = ("", "true", "false")


def decode(folder: Path, *more: str | Path, listed: bool = False) -> Any:
    """Decode a reference set with its map, or with its list where no map is stored."""
    looked_for: tuple[str | Path, ...] = ("--map", folder / "map.csv")
    if listed or not (folder / "map.csv").exists():
        looked_for = ("--candidates", folder / "candidates.txt", "--dialect", "google")
    files = ("--params", folder / "params.csv", "--counts", folder / "counts.csv", *looked_for)
    return rappor("decode", *files, *more, env=STRICT)


def number(cell: str) -> Any:
    """A cell as JSON has it: an empty one is not known."""
    return {"": None, "true": True, "false": False}[cell] if cell in WORDS else float(cell)


def table(path: Path) -> dict[str, dict[str, str]]:
    """The rows of a CSV file by their string."""
    with path.open(encoding="utf-8", newline="") as file:
        return {row["string"]: row for row in csv.DictReader(file)}


# Against the truth, and beside google/rappor's decoder.


SETS = {"exponential": (1, 2, 3), "windows": (1, 2), "chrome": (1,)}


@pytest.fixture(scope="module")
def references(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, dict[str, dict[str, str]]]:
    """All rows of all six sets, by folder."""
    found = {}
    output = tmp_path_factory.mktemp("references") / "results.csv"
    for family, sets in SETS.items():
        for number in sets:
            folder = REFERENCE / family / str(number)
            done = decode(folder, "--correction", "fdr", "--all", "--output", output)
            assert (done.returncode, done.stdout) == (0, "")
            found[folder] = table(output)
    return found


def test_results_are_right_about_the_truth_and_no_worse_than_the_reference(
    references: dict[Path, dict[str, dict[str, str]]],
) -> None:
    """Coverage is that of all sets together, 181 rows: .95 is seen as less than .90 in .2 %."""
    covered = looked = 0
    for family, sets in SETS.items():
        found, false, mine, theirs = 0, [], 0.0, 0.0
        for number in sets:
            folder = REFERENCE / family / str(number)
            rows, truth = detected(references[folder]), table(folder / "truth.csv")
            assert rows
            found += len(rows)
            false.append(sum(truth[name]["count"] == "0" for name in rows) / len(rows))
            mine += distance(rows, truth)
            theirs += distance(table(folder / "ref_FDR.csv"), truth)
            for name, row in rows.items():
                share, high = float(truth[name]["proportion"]), float(row["prop_high_95"])
                # An empty lower end is one at 0; what is not there at all was counted above.
                covered += float(row["prop_low_95"] or 0) <= share <= high
        assert sum(false) / len(false) <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / found), family
        assert mine <= 1.02 * theirs, family
        looked += found
    assert covered / looked >= 0.90, (covered, looked)


def detected(rows: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """The rows that passed the test."""
    return {name: row for name, row in rows.items() if row["detected"] == "true"}


def test_no_row_of_any_set_contradicts_itself(
    references: dict[Path, dict[str, dict[str, str]]],
) -> None:
    """Verdict, interval and estimate of 10,216 rows tell one story each."""
    assert len(references) == 6
    for folder, rows in references.items():
        assert {row["detected"] for row in rows.values()} == {"true", "false"}
        for name, row in rows.items():
            numbers = (row[key] for key in ("proportion", "prop_low_95", "prop_high_95"))
            share, low, high = (number(cell) for cell in numbers)
            about = (folder, name, row)
            assert (low or 0) <= share <= high <= 1, about
            if row["detected"] == "false":
                assert (low, row["presence_only"]) == (0, "false"), about
            elif row["presence_only"] == "true":
                assert low is None, about
            else:
                assert low > 0, about


def test_p_values_of_frequent_strings_differ(
    references: dict[Path, dict[str, dict[str, str]]],
) -> None:
    """Those of the twenty largest, which Table 1 has: no tail is cut off."""
    for number in SETS["exponential"]:
        rows = list(references[REFERENCE / "exponential" / str(number)].values())[:20]
        p_values = [float(row["p_value"]) for row in rows]
        assert len(set(p_values)) == 20, p_values
        assert min(p_values) < 1e-36


def test_plain_rates_are_those_of_scipy_on_the_printed_p_values(tmp_path: Path) -> None:
    output = tmp_path / "results.csv"
    assert decode(WINDOWS, "--correction", "bh", "--all", "--output", output).returncode == 0
    rows = list(table(output).values())
    adjusted = false_discovery_control([float(row["p_value"]) for row in rows], method="bh")
    assert len(rows) == 500
    for row, wanted in zip(rows, adjusted.tolist(), strict=True):
        assert float(row["adjusted_p_value"]) == pytest.approx(wanted, rel=1e-12, abs=0)
        assert row["detected"] == str(wanted <= 0.05).lower()
    assert {row["detected"] for row in rows} == {"true", "false"}


def distance(rows: dict[str, dict[str, str]], truth: dict[str, dict[str, str]]) -> float:
    """Σ |share found - true share|, 0 for what was not found."""
    return sum(
        abs(float(rows[name]["proportion"] if name in rows else 0) - float(row["proportion"]))
        for name, row in truth.items()
    )


# The same bytes, always.


@pytest.mark.long
def test_the_same_input_gives_the_same_bytes_whatever_the_order_of_candidates(
    tmp_path: Path,
) -> None:
    lines = (WINDOWS / "candidates.txt").read_text().splitlines()
    rows = (WINDOWS / "map.csv").read_text().splitlines()
    seen = set()
    for run in range(3):
        random.Random(run).shuffle(lines)
        random.Random(run).shuffle(rows)
        (tmp_path / "list.txt").write_text("\n".join(lines))
        (tmp_path / "map.csv").write_text("\n".join(rows))
        source = ("--candidates", tmp_path / "list.txt", "--dialect", "google")
        done = rappor(
            *("decode", "--params", WINDOWS / "params.csv", "--counts", WINDOWS / "counts.csv"),
            *(("--map", tmp_path / "map.csv") if run == 2 else source),
            *("--all", "--output", tmp_path / "results.csv"),
            env={**STRICT, "PYTHONHASHSEED": str(run)},
        )
        assert done.returncode == 0
        seen.add((tmp_path / "results.csv").read_bytes())
    decode(WINDOWS, "--all", "--output", tmp_path / "again.csv")
    assert seen == {(tmp_path / "again.csv").read_bytes()}


def test_the_order_of_cohorts_does_not_matter(tmp_path: Path) -> None:
    params = Params.from_csv(WINDOWS / "params.csv")
    k, h, m = params.k, params.h, params.m
    order = random.Random(5).sample(range(m), m)
    counts = (WINDOWS / "counts.csv").read_text().splitlines()
    (tmp_path / "counts.csv").write_text("\n".join(counts[j] for j in order))
    with (WINDOWS / "map.csv").open(newline="") as file, (tmp_path / "map.csv").open("w") as out:
        for string, *cells in csv.reader(file):
            bits = [(int(cell) - 1) % k for cell in cells]
            moved = [
                new * k + bits[old * h + hash_] + 1
                for new, old in enumerate(order)
                for hash_ in range(h)
            ]
            out.write(f"{string},{','.join(map(str, moved))}\n")
    (tmp_path / "params.csv").write_bytes((WINDOWS / "params.csv").read_bytes())
    for folder, name in ((WINDOWS, "a.csv"), (tmp_path, "b.csv")):
        assert decode(folder, "--all", "--output", tmp_path / name).returncode == 0
    one, other = table(tmp_path / "a.csv"), table(tmp_path / "b.csv")
    assert list(one) == list(other)
    for name, row in one.items():
        assert row["detected"] == other[name]["detected"]
        for column in GOOGLE[1:] + OURS:
            mine, theirs = number(row[column]), number(other[name][column])
            close = mine is theirs or mine == pytest.approx(theirs, rel=1e-9, abs=1e-9)
            assert close, (name, column)


# Files.


def test_results_have_googles_seven_columns_first_and_full_precision(tmp_path: Path) -> None:
    output = tmp_path / "results.csv"
    done = decode(WINDOWS, "--reports-per-client", "1", "--output", output)
    data = output.read_bytes()
    assert b"\r" not in data
    assert data.count(b'"') == 2 * (data.count(b"\n") - 1)  # the string of each row
    assert data.endswith(b"\n")
    header, *rows = csv.reader(io.StringIO(data.decode()))
    assert header == GOOGLE + OURS
    raw = [float(row[header.index("raw_estimate")]) for row in rows]
    assert raw == sorted(raw, reverse=True)
    for row in rows:
        assert all(cell in WORDS or repr(float(cell)) == cell for cell in row[1:])
        named = dict(zip(header[1:], map(number, row[1:]), strict=True))
        assert named["proportion"] == named["estimate"] / 186792
        assert named["snr"] == named["raw_estimate"] / named["std_error"]
        assert named["adjusted_p_value"] <= 0.05
        assert (named["prop_low_95"] is None) == named["presence_only"]
        assert (named["prop_low_95"] or 0) <= named["proportion"] <= named["prop_high_95"]
        assert 0 < named["forged_to_make_up"] < named["raw_estimate"]
        assert named["forged_to_hide"] >= 0
    assert {row[header.index("presence_only")] for row in rows} == {"true", "false"}
    # One line that sums up, and what to know about it.
    *notes, last = done.stderr.splitlines()
    assert all(line.startswith("note: ") for line in notes)
    assert last.startswith(
        f"186,792 reports, 500 candidates: {len(rows)} detected (FDR 5 %, adaptive);"
    )
    assert list(tmp_path.iterdir()) == [output]  # nothing temporary is left behind


def test_all_adds_what_was_not_detected_and_a_column_that_says_so(tmp_path: Path) -> None:
    few, every = tmp_path / "few.csv", tmp_path / "all.csv"
    decode(WINDOWS, "--output", few)
    decode(WINDOWS, "--all", "--output", every)
    rows = table(every)
    assert list(next(iter(rows.values()))) == [*GOOGLE, *OURS, "detected"]
    assert len(rows) == 500
    detected = {
        name: {key: cell for key, cell in row.items() if key != "detected"}
        for name, row in rows.items()
        if row["detected"] == "true"
    }
    assert detected == table(few)
    assert {row["detected"] for row in rows.values()} == {"true", "false"}


def test_json_and_parquet_hold_the_numbers_of_the_csv(tmp_path: Path) -> None:
    from pyarrow import parquet

    for ending in ("csv", "json", "parquet"):
        assert decode(WINDOWS, "--all", "--output", tmp_path / f"r.{ending}").returncode == 0
    rows = table(tmp_path / "r.csv")
    arrow = parquet.read_table(tmp_path / "r.parquet")
    assert arrow.schema.names == [*GOOGLE, *OURS, "detected"]
    written = json.loads((tmp_path / "r.json").read_text())
    assert written["rows"] == [
        {name: None if cell != cell else cell for name, cell in row.items()}  # not a number
        for row in arrow.to_pylist()
    ]
    assert [row["string"] for row in written["rows"]] == list(rows)
    for row in written["rows"]:
        said = rows[row["string"]]
        assert said["detected"] == str(row["detected"]).lower()
        assert all(number(said[name]) == row[name] for name in (*GOOGLE[1:], *OURS))
    printed = json.loads(decode(WINDOWS, "--all", "--json").stdout)
    assert printed == written
    assert list(printed) == FACTS
    assert (printed["reports"], printed["candidates"], printed["cohorts"]) == (186792, 500, 8)
    assert printed["detected"] == sum(row["detected"] for row in printed["rows"])
    assert printed["params_digest"] == Params.preset("windows").digest
    mass = printed["undetected_mass"]
    assert 0 <= mass["prop_low_95"] <= mass["proportion"] <= mass["prop_high_95"] <= 1
    assert mass["count"] == pytest.approx(mass["proportion"] * 186792)


@pytest.mark.parametrize(
    ("ending", "start"),
    [
        ("svg", b"<svg"),
        ("json", b"{"),
        pytest.param("png", b"\x89PNG", marks=pytest.mark.long),
        pytest.param("html", b"<!DOCTYPE html>", marks=pytest.mark.long),
    ],
)
def test_a_chart_is_written_in_the_format_of_its_name(
    ending: str, start: bytes, tmp_path: Path
) -> None:
    done = decode(WINDOWS, "--plot", tmp_path / f"plot.{ending}")
    assert done.returncode == 0
    assert (tmp_path / f"plot.{ending}").read_bytes().lstrip().startswith(start)
    assert done.stdout.startswith("string")


def test_a_failed_run_leaves_the_old_results_alone(tmp_path: Path) -> None:
    output = tmp_path / "results.csv"
    output.write_text("old")
    (tmp_path / "counts.csv").write_text("1,2\n")
    done = rappor(
        *("decode", "--preset", "windows", "--counts", tmp_path / "counts.csv"),
        *("--map", WINDOWS / "map.csv", "--output", output),
    )
    assert done.returncode == 3
    assert output.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["counts.csv", "results.csv"]


# The terminal.


def test_the_table_names_each_string_with_its_interval_and_sums_up() -> None:
    done = decode(WINDOWS)
    head, *rows, empty, summary = done.stdout.splitlines()
    assert re.split(r"  +", head) == [
        *("string", "estimate", "95 % interval", "share", "SNR", "p (adjusted)")
    ]
    sized = r"[\d,]+  +([\d,]+|> 0) – [\d,]+ +[\d.]+ %"
    present = r"present +at most [\d,]+ +at most [\d.]+ %"
    for row in rows:
        assert re.fullmatch(rf"PROC\d{{3}}\.EXE +({sized}|{present}) +[\d.]+ +[\d.e-]+", row), row
    assert re.search(sized, rows[0])
    assert re.search(present, rows[-1])
    assert empty == ""
    assert re.fullmatch(
        rf"186,792 reports, 500 candidates: {len(rows)} detected \(FDR 5 %, adaptive\); "
        r"undetected mass [\d.]+ % "
        r"\([\d.]+ – [\d.]+\); χ²/dof [\d.]+, robust path (not needed|used)",
        summary,
    )
    assert "how many reports one client" not in done.stderr  # a fact, which --diagnose says


def test_a_long_table_is_cut_at_fifty_rows_unless_all_is_asked_for() -> None:
    loose = ("--correction", "none", "--alpha", "0.5")
    done = decode(REFERENCE / "exponential" / "1", *loose)
    head, *rows, more, _, summary = done.stdout.splitlines()
    detected = int(re.search(r": (\d+) detected \(p < 50 %, not corrected\)", summary)[1])
    assert (head.startswith("string"), len(rows)) == (True, 50)
    assert more.startswith(f"… and {detected - 50} more detected (")
    done = decode(REFERENCE / "exponential" / "1", *loose, "--all")
    head, *rows, _, _ = done.stdout.splitlines()
    assert head.endswith("detected")
    assert len(rows) == 200


def test_a_terminal_without_utf8_gets_plain_letters() -> None:
    folder = REFERENCE / "windows" / "1"
    done = rappor(
        *("decode", "--params", folder / "params.csv", "--counts", folder / "counts.csv"),
        *("--map", folder / "map.csv"),
        env={"PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 0
    assert "chi^2/dof" in done.stdout
    assert "?" not in done.stdout


def test_hostile_strings_cannot_touch_the_terminal_and_are_whole_in_the_file(
    tmp_path: Path,
) -> None:
    from rappor import simulate

    names = ['a,"b"', "red\x1b[31m", "\u202eevil", "two\x0blines", "x" * 500, "日本語"]
    params = Params.preset("exponential")
    counts = simulate.counts(dict.fromkeys(names, 1.0), params, 10**6, seed=3)
    counts.to_parquet(tmp_path / "counts.parquet")
    (tmp_path / "list.txt").write_text("\n".join(names), encoding="utf-8")
    files = ("--counts", tmp_path / "counts.parquet", "--candidates", tmp_path / "list.txt")
    done = rappor("decode", *files, env=STRICT)
    assert done.returncode == 0
    assert not [char for char in done.stdout if not char.isprintable() and char != "\n"]
    assert "red\\x1b[31m" in done.stdout
    assert "\\u202eevil" in done.stdout
    assert "x" * 500 in done.stdout  # cut on a terminal only
    assert done.stderr == ""
    rappor("decode", *files, "--output", tmp_path / "r.csv")
    assert set(table(tmp_path / "r.csv")) == set(names)


def test_the_exit_code_says_when_nothing_is_there(tmp_path: Path) -> None:
    Counts.zero(Params.preset("windows")).to_csv(tmp_path / "zero.csv")
    zero = ("decode", "--preset", "windows", "--counts", tmp_path / "zero.csv")
    looked_for = ("--map", WINDOWS / "map.csv")
    done = rappor(*zero, *looked_for, env=STRICT)
    assert (done.returncode, done.stdout.splitlines()[0]) == (
        *(0, "Nothing was detected among 500 candidates."),
    )
    assert rappor(*zero, *looked_for, "--exit-code", "--json", env=STRICT).returncode == 4
    assert decode(WINDOWS, "--exit-code").returncode == 0


# What to assume.


def test_smooth_shares_are_an_extra_column_without_an_interval(tmp_path: Path) -> None:
    params = Params(k=6, h=1, m=1, f=0.25, p=0.35, q=0.65)
    counts = Counts(params, [20_000], [[8000, 9000, 10500, 10000, 9000, 7600]], kind="ordinal")
    counts.to_npz(tmp_path / "counts.npz")
    decode = ("decode", "--counts", tmp_path / "counts.npz", "--edges", "1,2,3,4,5")
    ranges = Ranges((1, 2, 3, 4, 5))
    histogram = library_decode(counts, ranges).histogram
    for strength in ("auto", "strong", 7.0):
        shape = smooth(histogram, strength)
        found = json.loads(rappor(*decode, "--smooth", str(strength), "--json").stdout)
        assert found["smooth"]["strength"] == shape.strength
        assert [row["smooth_proportion"] for row in found["rows"]] == shape.share.tolist()
    table = rappor(*decode, "--smooth")
    assert "smooth share" in table.stdout
    assert "no ordinary interval" in table.stdout
    wrong = rappor(*decode, "--smooth", "soft")
    assert (wrong.returncode, "strength must be one of" in wrong.stderr) == (3, True)


def test_overlap_says_how_many_clients_are_in_two_tables(tmp_path: Path) -> None:
    tables = []
    for number, (p, q) in enumerate(((0.25, 0.75), (0.35, 0.65))):
        params = Params(k=3, h=1, m=1, f=0.5, p=p, q=q)
        tables.append(
            Counts(
                params, [20_000], [[10_200, 9_800, 9_500]], kind="category", reports_per_client=1
            )
        )
        tables[-1].to_npz(tmp_path / f"{number}.npz")
    (tmp_path / "pairs.csv").write_text("0,500\n500,0\n")
    decode = ("decode", "--counts", tmp_path / "0.npz", "--counts", tmp_path / "1.npz")
    decode = (*decode, "--categories", "x,y,z", "--json")
    for said, overlap in (
        (("--overlap", "bound"), "bound"),
        (("--overlap", "none"), None),
        (("--overlap", tmp_path / "pairs.csv"), [[0, 500], [500, 0]]),
        ((), "bound"),
    ):
        found = json.loads(rappor(*decode, *said).stdout)
        wanted = library_decode(tables, ["x", "y", "z"], overlap=overlap)
        assert [row["std_error"] for row in found["rows"]] == [r.std_error for r in wanted.rows]
    (tmp_path / "bad.csv").write_text("a,b\n")
    bad = rappor(*decode, "--overlap", tmp_path / "bad.csv")
    assert (bad.returncode, "must be a table of numbers" in bad.stderr) == (3, True)


def test_assumptions_that_do_not_go_with_strings_are_refused() -> None:
    for options, message in (
        (("--smooth",), "--smooth is for kind ordinal"),
        (("--overlap", "none"), "--overlap does not go with strings"),
    ):
        done = decode(WINDOWS, *options)
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr
