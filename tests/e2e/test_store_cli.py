"""`rappor import|export|retain|backup|restore|status --data DIR` and `rappor decode COLLECTION`."""

import datetime
import json
import shutil
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import rappor as package
from rappor.collection import Collection
from rappor.store import open_store
from support import store_samples as samples
from support.collecting import (
    Process,
    collect_command,
    collector,
    day,
    stored,
    today,
    write_collections,
)
from support.command import rappor

HEAD = "client,cohort,rappor\n"
PARAMS = package.Params.preset("exponential")
TODAY = today()


def definition(name: str = "homepage", **fields: object) -> Collection:
    about: dict[str, object] = {
        "description": "the page that opens first",
        "owner": "team@example.org",
        "expires": TODAY + datetime.timedelta(days=365),
        "dimensions": {"country": ("NZ", "CH")},
        "keep_reports_days": 7,
    }
    return Collection(name, 1, PARAMS, **(about | fields))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of definitions, files of reports of two countries, and candidates."""
    folder = tmp_path_factory.mktemp("place")
    (folder / "collections").mkdir()
    (folder / "collections" / "homepage.toml").write_text(definition().to_toml())
    for seed, (country, held) in enumerate({"NZ": "a.org", "CH": "b.org"}.items()):
        population = folder / f"{country}.csv"
        population.write_text(f"string,frequency\n{held},3\nc.org,1\n")
        done = rappor(
            *("simulate", "--population", population, "--reports", "5e4"),
            *("--preset", "exponential", "--seed", str(seed), "--output", folder / country),
        )
        assert done.returncode == 0, done.stderr
    (folder / "candidates.txt").write_text("a.org\nb.org\nc.org\nd.org\n")
    return folder


@pytest.fixture(scope="module")
def data(place: Path) -> Path:
    """A data folder with both files, imported on two days."""
    folder = place / "data"
    yesterday = str(TODAY - datetime.timedelta(days=1))
    for country, period in (("NZ", yesterday), ("CH", str(TODAY))):
        done = rappor(
            *("import", place / country / "reports.parquet", "--data", folder),
            *("--collections", place / "collections", "--collection", "homepage"),
            *("--period", period, "--dimension", f"country={country}"),
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("50,000 reports of reports.parquet counted in homepage v1")
    return folder


def strings(document: dict[str, object]) -> list[str]:
    return [row["string"] for row in document["rows"]]  # type: ignore[attr-defined]


# Import.


def test_a_file_is_imported_once(place: Path, data: Path) -> None:
    before = json.loads(rappor("status", "--data", data, "--json").stdout)["collections"]
    done = rappor(
        *("import", place / "NZ" / "reports.parquet", "--data", data),
        *("--collection", "homepage", "--json"),
    )
    assert (done.returncode, json.loads(done.stdout)["new"]) == (0, False)
    after = json.loads(rappor("status", "--data", data, "--json").stdout)["collections"]
    assert before == after


def test_google_reports_csv_is_imported_with_the_current_period(tmp_path: Path) -> None:
    path = tmp_path / "reports.csv"
    rows = [f"c{number},{number % 16},{'01' * 64}" for number in range(32)]
    path.write_text("\n".join(["client,cohort,rappor", *rows, "c,99,01", ""]))
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "x.toml").write_text(definition().to_toml())
    common = ("--data", tmp_path / "d", "--collection", "homepage", "--collections", tmp_path / "c")
    strict = rappor("import", path, *common, "--strict")
    assert strict.returncode == 3
    assert "line 34" in strict.stderr
    done = rappor("import", path, *common, "--json")
    found = json.loads(done.stdout)
    assert (found["reports"], found["malformed"], found["new"]) == (32, 1, True)
    assert found["period"] in {str(TODAY), str(today())}
    assert found["dimensions"] == {"country": "other"}
    assert "line 34" in done.stderr


def test_what_cannot_be_imported_is_one_line(place: Path, data: Path, tmp_path: Path) -> None:
    file = place / "NZ" / "reports.parquet"
    cases = [
        (
            ("import", "nothing.csv", "--data", data, "--collection", "homepage"),
            3,
            "no such file or folder",
        ),
        (("import", file, "--data", data, "--collection", "other"), 3, "it has: homepage"),
        (
            ("import", file, "--data", data, "--collection", "homepage", "--period", "2026-W47"),
            3,
            "UTC day",
        ),
        (
            ("import", file, "--data", data, "--collection", "homepage", "--dimension", "os=x"),
            2,
            "declares country",
        ),
        (
            (*("import", file, "--data", data), "--collection", "homepage", "--dimension"),
            2,
            "expected one argument",
        ),
    ]
    for arguments, code, message in cases:
        done = rappor(*arguments)
        assert (done.returncode, done.stdout) == (code, "")
        assert message in done.stderr
        assert "Traceback" not in done.stderr
    missing = tmp_path / "missing"
    rappor("import", "nothing.csv", "--data", missing, "--collection", "homepage")
    assert not missing.exists()


# Decode.


def test_a_collection_is_decoded_from_the_store(place: Path, data: Path) -> None:
    candidates = ("--candidates", place / "candidates.txt")
    done = rappor("decode", "homepage", "--data", data, *candidates, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["reports"] == 50_000
    assert (found["collection"], found["periods"]) == ("homepage", [str(TODAY)])
    assert "b.org" in strings(found)
    assert f"{TODAY}: of 2 periods, the latest with enough reports" in done.stderr
    table = rappor("decode", "homepage", "--data", data, *candidates)
    assert table.stdout.startswith("string ")
    assert f"homepage v1, {TODAY}: 50,000 reports" in table.stdout


def test_a_sum_over_periods_is_asked_for_and_said(place: Path, data: Path) -> None:
    candidates = ("--candidates", place / "candidates.txt")
    done = rappor("decode", "homepage", "--data", data, *candidates, "--json", "--period", "all")
    found = json.loads(done.stdout)
    assert found["reports"] == 100_000
    assert found["periods"] == [str(TODAY - datetime.timedelta(days=1)), str(TODAY)]
    assert set(strings(found)) == {"a.org", "b.org", "c.org"}
    assert "2 periods added up" in done.stderr
    assert found["notes"][0].endswith("2 periods added up")


def test_one_period_or_a_range_of_them_is_decoded(place: Path, data: Path) -> None:
    yesterday = TODAY - datetime.timedelta(days=1)
    for period, reports, wanted in (
        (str(yesterday), 50_000, "a.org"),
        (str(TODAY), 50_000, "b.org"),
        (f"{yesterday}..{TODAY}", 100_000, "a.org"),
    ):
        done = rappor(
            *("decode", "homepage", "--data", data, "--period", period, "--json"),
            *("--candidates", place / "candidates.txt"),
        )
        found = json.loads(done.stdout)
        assert found["reports"] == reports
        assert wanted in strings(found)


def test_the_store_decodes_as_its_exported_counts_do(
    place: Path, data: Path, tmp_path: Path
) -> None:
    candidates = ("--candidates", place / "candidates.txt", "--json", "--all")
    direct = rappor("decode", "homepage", "--data", data, "--period", str(TODAY), *candidates)
    for ending in (".npz", ".parquet", ".csv"):
        path = tmp_path / f"counts{ending}"
        done = rappor(
            *("export", "homepage", "--data", data, "--period", str(TODAY), "--output", path)
        )
        assert done.returncode == 0, done.stderr
        about = ("--preset", "exponential", "--dialect", "rappor-v1", "--reports-per-client", "1")
        given = about if ending == ".csv" else ()
        other = rappor("decode", "--counts", path, *given, *candidates)
        about_view = {"collection", "version", "periods", "dimensions", "notes"}
        found, wanted = (
            {key: value for key, value in json.loads(each.stdout).items() if key not in about_view}
            for each in (other, direct)
        )
        assert found == wanted


def test_dimensions_and_periods_are_decoded_by_themselves(
    place: Path, data: Path, tmp_path: Path
) -> None:
    common = ("decode", "homepage", "--data", data, "--candidates", place / "candidates.txt")
    latest = json.loads(rappor(*common, "--by", "country", "--json").stdout)["results"]
    assert {name: each["periods"] for name, each in latest.items()} == {"CH": [str(TODAY)]}
    done = rappor(*common, "--by", "country", "--json", "--period", "all")
    results = json.loads(done.stdout)["results"]
    assert {name: each["reports"] for name, each in results.items()} == {"CH": 50_000, "NZ": 50_000}
    assert "b.org" in strings(results["CH"])
    assert "b.org" not in strings(results["NZ"])
    by_period = rappor(*common, "--by", "period")
    assert by_period.stdout.count("\nperiod ") + by_period.stdout.startswith("period ") == 2
    done = rappor(
        *(*common, "--by", "country", "--period", "all", "--output", tmp_path / "results.csv")
    )
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results.CH.csv", "results.NZ.csv"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("homepage",), 2, "--data DIR"),
        (("homepage", "--data", "{data}", "--k", "8"), 2, "--k does not go with a collection"),
        (("homepage", "--data", "{data}", "--counts", "x.csv"), 2, "--counts does not go"),
        (("homepage", "--data", "{data}", "--sum-periods"), 2, "--sum-periods does not go"),
        (("--data", "{data}"), 2, "--data goes with a collection"),
        (("--by", "country", "--counts", "x.csv"), 2, "--by goes with a collection"),
        ((), 2, "required: --counts"),
        (("homepage", "--data", "{data}"), 2, "give --candidates or --map"),
        (("other", "--data", "{data}"), 3, "the store has no collection 'other'"),
        (("homepage", "--data", "{data}", "--version", "7"), 3, "no version 7"),
        (("homepage", "--data", "{data}", "--period", "2020-01-01"), 3, "nothing to decode"),
        (("homepage", "--data", "{data}", "--period", "soon"), 3, "a period must be a day"),
        (("homepage", "--data", "{data}", "--period", "2026-02-01..2026-01-01"), 2, "ends before"),
        (("homepage", "--data", "{data}", "--by", "os"), 3, "can be split by country, period"),
        (("homepage", "--data", "nowhere"), 3, "no such data folder"),
    ],
)
def test_the_two_forms_exclude_each_other_and_errors_are_one_line(
    data: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    done = rappor("decode", *(each.format(data=data) for each in arguments))
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_kinds_with_a_list_of_their_own_need_no_candidates(tmp_path: Path) -> None:
    params = package.Params(k=3, h=1, m=1, f=0.5, p=0.5, q=0.75)
    asked = Collection(
        "colour",
        1,
        params,
        kind="category",
        categories=("red", "green", "blue"),
        owner="team@example.org",
        expires=TODAY + datetime.timedelta(days=9),
    )
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "colour.toml").write_text(asked.to_toml())
    rng = np.random.default_rng(1)
    bits = rng.random((20_000, 3)) < np.array([0.62, 0.56, 0.56])  # p* = .5625, q* = .6875
    rows = ["".join("01"[bit] for bit in each[::-1].astype(int)) for each in bits]
    path = tmp_path / "reports.csv"
    path.write_text(HEAD + "".join(f"1,0,{each}\n" for each in rows))
    place = ("--data", tmp_path / "d")
    about = ("--collection", "colour", "--collections", tmp_path / "c")
    assert rappor("import", path, *place, *about).returncode == 0
    done = rappor("decode", "colour", *place, "--json")
    assert done.returncode == 0, done.stderr
    rows_found = json.loads(done.stdout)["rows"]
    assert [row["string"] for row in rows_found if row["detected"]] == ["red"]


# Export, audit, status.


def test_kept_reports_are_exported_in_both_formats(data: Path, tmp_path: Path) -> None:
    for name in ("reports.csv", "reports.parquet"):
        path = tmp_path / name
        done = rappor("export", "homepage", "--data", data, "--reports", "--output", path)
        assert done.returncode == 0, done.stderr
        counted = package.aggregate.aggregate_files(path, PARAMS)
        assert (counted.rows, counted.malformed) == (100_000, 0)
        assert path.stat().st_mode & 0o077 == 0
        store = open_store(data, read_only=True)
        ones = sum(each.ones for each in store.counts("homepage"))
        store.close()
        assert (counted.counts.ones == ones).all()
    log = json.loads(rappor("status", "--data", data, "--audit", "--json").stdout)["audit"]
    exports = [each["detail"] for each in log if each["action"] == "export"]
    assert any("reports.parquet" in each for each in exports)
    assert all(each["actor"].startswith("user ") for each in log)


def test_exports_that_cannot_be_are_refused(data: Path, tmp_path: Path) -> None:
    base = ("export", "homepage", "--data", data)
    wrong = rappor(*base, "--output", tmp_path / "counts.xlsx")
    assert (wrong.returncode, "must end in" in wrong.stderr) == (2, True)
    nothing = rappor(*base, "--output", tmp_path / "a.csv", "--period", "2020-01-01")
    assert (nothing.returncode, "no reports in the store" in nothing.stderr) == (3, True)
    assert list(tmp_path.iterdir()) == []


def test_status_tells_what_is_there_and_finds_damage(data: Path, tmp_path: Path) -> None:
    done = rappor("status", "--data", data)
    assert done.returncode == 0
    assert "homepage v1" in done.stdout
    assert "store: sound" in done.stdout
    found = json.loads(rappor("status", "--data", data, "--json").stdout)
    (only,) = found["collections"]
    assert (only["reports"], only["periods"], only["kept_reports"]) == (100_000, 2, 100_000)
    assert found["problems"] == []
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    content = bytearray((data / "store.sqlite").read_bytes())
    content[len(content) // 2] ^= 1
    (damaged / "store.sqlite").write_bytes(content)
    done = rappor("status", "--data", damaged)
    assert done.returncode == 1
    assert "problem: " in done.stderr
    assert "store: damaged" in done.stdout


# Retention, backup, restore.


def test_the_drill_of_backup_and_restore_gives_equal_counts(data: Path, tmp_path: Path) -> None:
    backup = tmp_path / "copy.backup"
    done = rappor("backup", "--data", data, "--output", backup, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["reports"] == 100_000
    assert backup.stat().st_mode & 0o077 == 0
    refused = rappor("restore", backup, "--data", data)
    assert (refused.returncode, "not restored over a store" in refused.stderr) == (3, True)
    assert rappor("restore", backup, "--data", tmp_path / "again").returncode == 0
    stores = [open_store(place, read_only=True) for place in (data, tmp_path / "again")]
    mine, theirs = ([each.ones.tolist() for each in store.counts("homepage")] for store in stores)
    assert mine == theirs
    assert stores[1].audit_log()[-1].action == "restore"
    for store in stores:
        store.close()
    backup.write_bytes(backup.read_bytes()[:-5000])
    damaged = rappor("restore", backup, "--data", tmp_path / "third")
    assert (damaged.returncode, f"{backup}: " in damaged.stderr) == (3, True)
    assert not (tmp_path / "third" / "store.sqlite").exists()


def test_retain_says_what_it_would_do_and_then_does_it(data: Path, tmp_path: Path) -> None:
    backup = tmp_path / "copy.backup"
    rappor("backup", "--data", data, "--output", backup)
    copy = tmp_path / "copy"
    rappor("restore", backup, "--data", copy)
    later = ("--data", copy, "--today", str(TODAY + datetime.timedelta(days=8)))
    planned = rappor("retain", *later, "--dry-run")
    assert "100,000 kept reports in 2 cells would be deleted" in planned.stdout
    done = rappor("retain", *later, "--json")
    assert json.loads(done.stdout)["reports"] == 100_000
    assert json.loads(rappor("retain", *later, "--json").stdout)["reports"] == 0
    status = json.loads(rappor("status", "--data", copy, "--json").stdout)
    assert status["collections"][0]["reports"] == 100_000
    assert status["collections"][0]["kept_reports"] == 0
    assert status["last_retention"] is not None
    expired = str(TODAY + datetime.timedelta(days=365))
    done = rappor("retain", "--data", copy, "--today", expired)
    assert "100,000 counted reports in 2 cells of expired collections deleted" in done.stdout
    wrong = rappor("retain", "--data", copy, "--today", "soon")
    assert (wrong.returncode, "not a day" in wrong.stderr) == (2, True)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A data folder with three reports of one file."""
    write_collections(tmp_path)
    file = tmp_path / "a.csv"
    file.write_text(HEAD + "".join(f"{row},{row},{row:016b}\n" for row in range(3)))
    folder = tmp_path / "data"
    about = ("--collections", tmp_path / "collections", "--collection", "homepage")
    done = rappor("import", file, "--data", folder, *about, "--period", day())
    assert done.returncode == 0, done.stderr
    return folder


def test_a_day_to_come_is_warned_about_before_tokens_go(small: Path) -> None:
    later = str(today() + datetime.timedelta(days=30))
    done = rappor("retain", "--data", small, "--today", later)
    assert done.returncode == 0
    assert "twice" in done.stderr
    assert "twice" not in rappor("retain", "--data", small).stderr


def test_a_backup_is_written_down_before_it_is_made(small: Path, tmp_path: Path) -> None:
    copy = tmp_path / "b.backup"
    assert rappor("backup", "--data", small, "--output", copy).returncode == 0
    assert rappor("restore", copy, "--data", tmp_path / "again").returncode == 0
    said = json.loads(rappor("status", "--data", tmp_path / "again", "--audit", "--json").stdout)
    assert [each["action"] for each in said["audit"]] == ["define", "import", "backup", "restore"]


@pytest.mark.parametrize(
    "command",
    [
        ("retain",),
        ("export", "homepage", "--output", "counts.csv"),
        ("import", "a.csv", "--collection", "homepage"),
        ("backup", "--output", "b.backup"),
        ("status",),
        ("decode", "homepage", "--candidates", "a.csv"),
    ],
    ids=lambda each: each[0],
)
def test_a_misspelt_folder_is_an_error_and_not_a_new_store(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "a.csv").write_text(HEAD + "1,1,0000000000000001\n")
    placed = [str(tmp_path / each) if "." in each else each for each in command]
    done = rappor(*placed, "--data", tmp_path / "dta")
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert "dta: no such data folder; check the path" in done.stderr
    assert not (tmp_path / "dta").exists()


def test_expired_reports_are_gone_from_every_file_while_the_collector_runs(tmp_path: Path) -> None:
    """Sixteen bytes that stand out, imported for a period whose days are over."""
    params = package.Params(k=128, h=2, m=4, f=0.5, p=0.5, q=0.75)
    write_collections(tmp_path, Collection("homepage", 1, params, keep_reports_days=1))
    pattern = bytes.fromhex("deadbeefcafef00d0123456789abcdef")
    bits = f"{int.from_bytes(pattern, 'little'):0128b}"
    file = tmp_path / "a.csv"
    file.write_text(HEAD + f"1,1,{bits}\n" * 1500)
    data = tmp_path / "data"

    def hits() -> list[str]:
        return [each.name for each in data.iterdir() if pattern in each.read_bytes()]

    with collector(tmp_path) as process:
        process.wait_for_event("retention")  # its own, which would find them
        old = (today() - datetime.timedelta(days=2)).isoformat()
        done = rappor("import", file, "--data", data, "--collection", "homepage", "--period", old)
        assert done.returncode == 0
        assert hits()
        done = rappor("retain", "--data", data, "--json")
        assert json.loads(done.stdout)["reports"] == 1500
        assert json.loads(done.stdout)["settled"] is True
        assert hits() == []
    assert hits() == []
    assert stored(tmp_path) == {(old, ""): 1500}


def test_a_lost_log_is_refused_by_every_verb_until_the_loss_is_accepted(tmp_path: Path) -> None:
    write_collections(tmp_path, samples.collection())
    live = open_store(tmp_path / "live")
    live.save_definition(samples.collection().to_toml(), actor="ann")
    for number in range(100):
        folds = samples.always([samples.fold(samples.cell(), 0, [number])])
        live.add([samples.token(number)], folds, samples.DAY)
    data = tmp_path / "data"
    shutil.copytree(tmp_path / "live", data)  # what kill -9 leaves
    live.close()
    for ending in ("-wal", "-shm"):
        (data / f"store.sqlite{ending}").unlink()
    for verb in (["status"], ["status", "--no-check"], ["retain"], ["retain", "--dry-run"]):
        done = rappor(*verb, "--data", data)
        assert done.returncode == 1
        assert "acknowledged" in done.stderr
        assert "--accept-loss" in done.stderr
    with closing(Process(collect_command(tmp_path))) as refused:
        assert refused.wait() == 1
        assert "acknowledged" in "".join(refused.text)
    done = rappor("status", "--data", data, "--accept-loss", "--audit")
    assert done.returncode == 0, done.stderr
    assert "accepted: " in done.stderr
    assert "accept-loss" in done.stdout
    again = rappor("status", "--data", data, "--accept-loss")
    assert again.returncode == 0
    assert "nothing is lost" in again.stderr
    with collector(tmp_path) as process:
        assert process.end() == 0


@pytest.mark.parametrize("verb", [("export", "homepage"), ("backup",)], ids=lambda words: words[0])
def test_no_file_is_named_like_standard_output(
    verb: tuple[str, ...], data: Path, tmp_path: Path
) -> None:
    done = rappor(*verb, "--data", data, "--output", "-", cwd=tmp_path)
    assert done.returncode == 3
    assert done.stderr.endswith("-: this is not written to standard output; name a file\n")
    assert list(tmp_path.glob("-")) == []


@pytest.mark.parametrize("verb", [("export", "homepage"), ("backup",)], ids=lambda words: words[0])
def test_a_file_of_before_is_replaced_only_on_request(
    verb: tuple[str, ...], data: Path, tmp_path: Path
) -> None:
    target = tmp_path / "before.csv"
    target.write_text("a file of before\n")
    words = (*verb, "--data", data, "--output", target)
    done = rappor(*words)
    assert done.returncode == 3
    assert done.stderr.endswith(f"{target}: exists already; --force replaces it\n")
    assert target.read_text() == "a file of before\n"
    assert rappor(*words, "--force").returncode == 0
    assert target.read_bytes() != b"a file of before\n"
