"""`rappor simulate` in real processes: its files, read by the verbs that read real ones."""

import csv
import json
import math
import shlex
import subprocess
from pathlib import Path

import pytest
from pyarrow import parquet

from rappor import Counts, Params
from rappor.collection import Collection
from support.command import rappor

STRICT = {"PYTHONWARNINGS": "error"}
SMALL = ("--population", "zipf", "--reports", "2e4", "--preset", "exponential", "--seed", "7")


def simulate(folder: Path, *more: str | Path) -> subprocess.CompletedProcess[str]:
    done = rappor("simulate", "--output", folder, *more, env=STRICT)
    assert (done.returncode, done.stderr.count("\n")) == (0, 0 if "--json" in more else 1), (
        done.stderr
    )
    return done


def files(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()}


def truth(folder: Path) -> dict[str, int]:
    with (folder / "truth.csv").open(encoding="utf-8", newline="") as file:
        return {row["string"]: int(row["count"]) for row in csv.DictReader(file)}


def follow(done: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    """Run the command that the summary names."""
    (line,) = [each for each in done.stdout.splitlines() if each.startswith("next: ")]
    words = shlex.split(line.removeprefix("next: "))
    assert words[0] == "rappor"
    return rappor(*words[1:], "--json", env=STRICT)


PAGES = ("--kind", "tuple", "--field", "page=string", "--field", "beta=boolean")


def test_a_tuple_is_simulated_imported_and_associated(tmp_path: Path) -> None:
    """The command that it names, and a data folder with its reports, give the same answer."""
    pairs = [("a", True), ("a", True), ("a", False), ("b", False), ("b", False)]
    lines = [json.dumps({"page": page, "beta": beta}) for page, beta in pairs]
    (tmp_path / "pairs.txt").write_text("\n".join(lines), encoding="utf-8")
    made, asked = tmp_path / "made", ("--population", tmp_path / "pairs.txt", "--reports", "3e4")
    done = simulate(made, *PAGES, *asked, "--preset", "windows", "--seed", "1")
    assert {"candidates-page.txt", "collection.toml", "reports.parquet"} <= files(made)
    found = json.loads(follow(done).stdout)
    held = {json.loads(text)["page"]: 0 for text in truth(made)}
    for text, number in truth(made).items():
        held[json.loads(text)["page"]] += number
    for margin in found["margins"]["page"][:2]:
        assert margin["low_95"] < held[margin["value"]] / 30_000 < margin["high_95"]
    definitions, data = tmp_path / "definitions", tmp_path / "data"
    definitions.mkdir()
    (made / "collection.toml").rename(definitions / "simulated.toml")
    given = ("--data", data, "--collection", "simulated", "--collections", definitions)
    assert rappor("import", made / "reports.parquet", *given).returncode == 0
    listed = ("--candidates", made / "candidates-page.txt", "--json", "--exact")
    again = rappor("associate", "simulated", "--data", data, *listed)
    assert json.loads(again.stdout)["independence"] == found["independence"]


def test_a_tuple_of_three_fields_without_a_permanent_step_is_associated_too(
    tmp_path: Path,
) -> None:
    """f = 0: ε has no limit of its own, so the definition says what the simulated clients spend."""
    people = [
        {"age": age, "url": url, "page": "ab"[age > 18]} for age in (10, 30) for url in ("u", "v")
    ]
    lines = "\n".join(map(json.dumps, people))
    (tmp_path / "people.txt").write_text(lines, encoding="utf-8")
    fields = ("age=ordinal:18", "url=string", "page=string")
    given = [word for field in fields for word in ("--field", field)]
    views = ("--view", "age,url,page=0.8", "--view", "page=0.2")
    params = ("--k", "64", "--h", "1", "--m", "32", "--f", "0", "--p", "0.25", "--q", "0.75")
    asked = ("--population", tmp_path / "people.txt", "--reports", "20000", "--seed", "1")
    repeats = ("--reports-per-client", "2")
    made = tmp_path / "made"
    done = simulate(made, "--kind", "tuple", *given, *views, *params, *asked, *repeats)
    definition = Collection.read(made / "collection.toml")
    assert definition.max_epsilon == pytest.approx(2 * 2 * math.log(3))
    assert "--variables url,page" in done.stdout
    assert json.loads(follow(done).stdout)["names"] == ["url", "page"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--kind", "tuple"), "kind tuple needs its fields"),
        (("--field", "page=string"), "with --kind tuple only"),
        (PAGES, "one JSON object a line"),
        ((*PAGES, "--format", "google", "--population", "x.txt"), "google/rappor has no tuples"),
    ],
)
def test_options_of_tuples_are_named_with_a_way_out(
    tmp_path: Path, given: tuple[str, ...], words: str
) -> None:
    usual = ("--population", "zipf", "--reports", "100", "--preset", "windows")
    done = rappor("simulate", "--output", tmp_path / "made", *usual, *given)
    assert (done.returncode, words in done.stderr) == (2, True), done.stderr


def test_our_files_aggregate_and_decode_like_a_collections(tmp_path: Path) -> None:
    done = simulate(tmp_path / "a b", *SMALL, "--absent", "20")
    folder = tmp_path / "a b"
    assert files(folder) == {
        "params.csv",
        "reports.parquet",
        "counts.npz",
        "candidates.txt",
        "truth.csv",
    }
    assert sum(truth(folder).values()) == 20_000
    assert len(truth(folder)) == 120
    again = tmp_path / "again.npz"
    options = ("--dialect", "rappor-v1", "--reports-per-client", "1", "--output", again)
    params = ("--params", folder / "params.csv")
    counted = rappor("aggregate", folder / "reports.parquet", *params, *options, env=STRICT)
    assert counted.returncode == 0
    assert Counts.from_npz(again) == Counts.from_npz(folder / "counts.npz")
    decoded = follow(done)
    assert decoded.returncode == 0, decoded.stderr
    found = json.loads(decoded.stdout)
    assert (found["reports"], found["candidates"], found["dialect"]) == (20_000, 120, "rappor-v1")
    assert found["rows"][0]["string"] == "v1"


@pytest.mark.parametrize("steps", [(), ("--steps",)], ids=["reports", "steps"])
def test_googles_files_aggregate_map_and_decode(tmp_path: Path, steps: tuple[str, ...]) -> None:
    done = simulate(tmp_path / "g", *SMALL, "--absent", "20", "--format", "google", *steps)
    folder = tmp_path / "g"
    assert files(folder) == {
        "params.csv",
        "reports.csv",
        "counts.csv",
        "map.csv",
        "candidates.txt",
        "truth.csv",
    }
    with (folder / "reports.csv").open() as file:
        header = file.readline()
    assert header == ("client,cohort,bloom,prr,irr\n" if steps else "client,cohort,rappor\n")
    params = ("--params", folder / "params.csv")
    counted = rappor(
        "aggregate", folder / "reports.csv", *params, "--output", tmp_path / "c.csv", env=STRICT
    )
    assert counted.returncode == 0
    assert (tmp_path / "c.csv").read_bytes() == (folder / "counts.csv").read_bytes()
    mapped = rappor(
        "candidates", folder / "candidates.txt", *params, "--dialect", "google", env=STRICT
    )
    assert mapped.stdout == (folder / "map.csv").read_bytes().decode()
    decoded = follow(done)
    assert decoded.returncode == 0, decoded.stderr
    assert json.loads(decoded.stdout)["rows"][0]["string"] == "v1"


@pytest.mark.long
def test_a_seed_makes_the_same_bytes_and_another_does_not(tmp_path: Path) -> None:
    for name, seed in (("a", "7"), ("b", "7"), ("c", "8")):
        simulate(tmp_path / name, *SMALL[:-1], seed)
    for name in ("reports.parquet", "counts.npz", "truth.csv"):
        same, other = ((tmp_path / each / name).read_bytes() for each in "bc")
        assert (tmp_path / "a" / name).read_bytes() == same
        assert same != other


def test_without_a_seed_one_is_drawn_and_shown(tmp_path: Path) -> None:
    done = simulate(tmp_path / "a", *SMALL[:-2], "--counts-only", "--json")
    seed = json.loads(done.stdout)["seed"]
    simulate(tmp_path / "b", *SMALL[:-2], "--counts-only", "--seed", str(seed))
    assert Counts.from_npz(tmp_path / "a/counts.npz") == Counts.from_npz(tmp_path / "b/counts.npz")


def test_counts_only_has_the_same_truth_and_no_reports(tmp_path: Path) -> None:
    simulate(tmp_path / "a", *SMALL)
    simulate(tmp_path / "b", *SMALL, "--counts-only")
    assert "reports.parquet" not in files(tmp_path / "b")
    assert truth(tmp_path / "a") == truth(tmp_path / "b")
    simulate(
        tmp_path / "many",
        "--population",
        "exponential",
        *("--reports", "1e9", "--preset", "chrome", "--counts-only"),
    )
    assert Counts.from_npz(tmp_path / "many/counts.npz").reports == 10**9


def test_the_summary_as_json_says_what_there_is(tmp_path: Path) -> None:
    done = simulate(tmp_path / "a", *SMALL, "--absent", "20", "--unlisted", "5", "--json")
    found = json.loads(done.stdout)
    assert {name: found[name] for name in ("strings", "absent", "unlisted", "candidates")} == {
        "strings": 100,
        "absent": 20,
        "unlisted": 5,
        "candidates": 115,
    }
    assert (found["reports"], found["clients"], found["seed"]) == (20_000, 20_000, 7)
    assert set(found["files"]) == files(tmp_path / "a")
    assert Params.from_dict(found["params"]).digest == found["digest"]
    assert len((tmp_path / "a/candidates.txt").read_text().splitlines()) == 115


@pytest.mark.long
def test_windows_machines_and_repeating_clients_say_so_in_the_counts(tmp_path: Path) -> None:
    machines = (
        *("--population", "zipf", "--power", "1.6", "--shift", "15", "--strings", "500"),
        *("--reports", "186792", "--clients", "10133", "--values", "distinct"),
        *("--preset", "windows", "--random-cohorts", "--seed", "1"),
    )
    simulate(tmp_path / "w", *machines)
    found = Counts.from_npz(tmp_path / "w/counts.npz")
    assert (found.reports, found.reports_per_client) == (186_792, 1)
    assert found.totals.max() - found.totals.min() > 200  # equal cohorts differ by a client or two
    simulate(tmp_path / "r", *SMALL, "--reports-per-client", "5")
    assert Counts.from_npz(tmp_path / "r/counts.npz").reports_per_client == 5
    changing = ("--reports-per-client", "5", "--values", "changing", "--change", "0.1")
    done = simulate(tmp_path / "c", *SMALL, *changing, "--format", "google")
    assert "--reports-per-client 5" in done.stdout


@pytest.mark.long
def test_the_normal_preset_is_decoded_by_category(tmp_path: Path) -> None:
    options = ("--population", "normal", "--reports", "1e6", "--preset", "normal", "--seed", "1")
    for name, more in (("a", ()), ("g", ("--format", "google"))):
        done = simulate(tmp_path / name, *options, *more)
        assert "map.csv" not in files(tmp_path / name)
        decoded = follow(done)
        assert decoded.returncode == 0, decoded.stderr
        rows = json.loads(decoded.stdout)["rows"]
        assert 45 <= int(rows[0]["string"].removeprefix("v")) <= 55


@pytest.mark.parametrize("form", ["rappor", "google"])
def test_numbers_are_decoded_by_ranges_and_booleans_by_themselves(
    tmp_path: Path, form: str
) -> None:
    six = ("--k", "20", "--h", "1", "--m", "1", "--f", "0", "--p", "0.25", "--q", "0.75")
    normal = ("--population", "normal", "--strings", "20", "--mean", "10", "--sd", "2")
    done = simulate(
        tmp_path / "o", *normal, *six, "--reports", "1e5", "--kind", "ordinal", "--format", form
    )
    decoded = follow(done)
    assert decoded.returncode == 0, decoded.stderr
    quantiles = {each["probability"]: each for each in json.loads(decoded.stdout)["quantiles"]}
    assert quantiles[0.5]["label"] == "9.5 to < 10.5"
    (tmp_path / "answers.csv").write_text("string,frequency\ntrue,3\nfalse,7\n")
    done = simulate(
        tmp_path / "b",
        *("--population", tmp_path / "answers.csv", "--reports", "1e5", "--kind", "boolean"),
        *("--k", "1", *six[2:]),
        *("--format", form),
    )
    decoded = follow(done)
    assert decoded.returncode == 0, decoded.stderr
    (row,) = [row for row in json.loads(decoded.stdout)["rows"] if row["string"] == "true"]
    assert abs(row["proportion"] - 0.3) < 0.02


def test_a_population_in_a_file_may_hold_any_string(tmp_path: Path) -> None:
    (tmp_path / "odd.csv").write_text('string,frequency\n"two\nlines",3\n"a,b",2\nc,1\n')
    done = simulate(
        tmp_path / "a",
        *("--population", tmp_path / "odd.csv", "--reports", "1e5", "--preset", "windows"),
    )
    assert "candidates.csv" in files(tmp_path / "a")
    decoded = follow(done)
    assert {row["string"] for row in json.loads(decoded.stdout)["rows"]} == {
        "two\nlines",
        "a,b",
        "c",
    }


def test_files_of_another_run_are_replaced_only_on_request_and_only_all_of_them(
    tmp_path: Path,
) -> None:
    simulate(tmp_path / "a", *SMALL)
    before = {name: (tmp_path / "a" / name).read_bytes() for name in files(tmp_path / "a")}
    again = rappor("simulate", "--output", tmp_path / "a", *SMALL[:-1], "8")
    assert (again.returncode, again.stdout) == (3, "")
    assert "of another run; give another folder, or --force to replace them" in again.stderr
    assert before == {name: (tmp_path / "a" / name).read_bytes() for name in before}
    simulate(tmp_path / "a", *SMALL[:-1], "8", "--force")
    done = rappor("simulate", "--output", tmp_path / "a", *SMALL, "--counts-only", "--force")
    assert done.returncode == 3
    assert "has reports.parquet of another run, which this one does not replace" in done.stderr
    assert not [name for name in files(tmp_path / "a") if name.startswith(".")]


def test_decoding_sets_what_it_found_beside_the_truth(tmp_path: Path) -> None:
    made = rappor("simulate", "--population", "exponential", "--reports", "1e5", "--strings", "20",
                  "--absent", "5", "--preset", "exponential", "--seed", "1", "--counts-only",
                  "--output", tmp_path)  # fmt: skip
    assert made.returncode == 0, made.stderr
    (counts,) = tmp_path.glob("counts.*")
    decode = ("decode", "--params", tmp_path / "params.csv", "--counts", counts, "--candidates",
              tmp_path / "candidates.txt", "--truth", tmp_path / "truth.csv")  # fmt: skip
    done = rappor(*decode)
    assert done.returncode == 0, done.stderr
    assert "truth" in done.stdout
    assert "Truth: " in done.stdout
    assert " of 20 listed strings found" in done.stdout
    head = done.stdout.splitlines()[0]
    wanted = "string estimate 95 % interval std. error p-value truth share SNR verdict"
    assert head.split() == wanted.split()
    facts = json.loads(rappor(*decode, "--json").stdout)["judgement"]
    assert facts["present_listed"] == 20
    assert len(facts["rows"]) == facts["detected"] + facts["missed"]
    with (tmp_path / "truth.csv").open(newline="") as file:
        held = {row["string"]: int(row["count"]) for row in csv.DictReader(file)}
    outputs = {"json": json.loads(rappor(*decode, "--all", "--json").stdout)["rows"]}
    for ending in ("csv", "json", "parquet"):
        path = tmp_path / f"results.{ending}"
        assert rappor(*decode, "--all", "--output", path).returncode == 0
        if ending == "csv":
            outputs["csv file"] = list(csv.DictReader(path.read_text().splitlines()))
        elif ending == "json":
            outputs["json file"] = json.loads(path.read_text())["rows"]
        else:
            outputs["parquet"] = parquet.read_table(path).to_pylist()
    columns = {"string", "estimate", "prop_low_95", "prop_high_95", "std_error", "p_value"}
    for name, rows in outputs.items():
        assert len(rows) == 25, name
        assert set(rows[0]) >= columns | {"truth", "proportion", "snr"}, name
        found = {row["string"]: int(row["truth"]) for row in rows}
        assert found == {row["string"]: held.get(row["string"], 0) for row in rows}, name
    missing = rappor(*decode[:-1], tmp_path / "none.csv")
    assert missing.returncode == 3
    assert "none.csv" in missing.stderr
