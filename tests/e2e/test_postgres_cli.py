"""Every verb, the dashboard and `rappor.open` give on PostgreSQL what they give on SQLite."""

import datetime
import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rappor as package
from rappor.collection import Collection
from rappor.dashboard.auth.roles import Role
from rappor.host import LOOPBACK
from rappor.store import open_store
from support.collecting import today
from support.command import rappor
from support.dashboard import Sample, serving
from support.ports import held_port
from support.postgres import Server, a_server
from support.visit import Visit
from support.waiting import wait_for

pytestmark = pytest.mark.long
PARAMS = package.Params.preset("exponential")
TODAY = today()
YESTERDAY, LONG_AGO = (TODAY - datetime.timedelta(days=back) for back in (1, 30))
FILES = {"NZ": YESTERDAY, "CH": TODAY, "AU": LONG_AGO}


def definition(name: str = "homepage", **fields: Any) -> Collection:
    about: dict[str, Any] = {
        "owner": "team@example.org",
        "expires": TODAY + datetime.timedelta(days=365),
        "dimensions": {"country": tuple(FILES)},
        "keep_reports_days": 60,
    }
    return Collection(name, 1, PARAMS, **(about | fields))


@dataclass(frozen=True)
class Side:
    """A store, and a folder for what is made from it."""

    folder: Path
    option: tuple[str, str]

    @property
    def where(self) -> str:
        return self.option[1]

    @property
    def definitions(self) -> Path:
        return self.folder / "collections"

    def run(self, verb: str, *arguments: str | Path, code: int = 0) -> str:
        """What the verb prints about this store, without the names of its places."""
        done = rappor(*verb.split(), *arguments, *self.option)
        assert done.returncode == code, (verb, done.stderr)
        text = done.stdout + done.stderr
        return text.replace(self.where, "STORE").replace(str(self.folder), "FOLDER")

    def document(self, verb: str, *arguments: str | Path) -> Any:
        """The JSON that the verb prints."""
        done = rappor(*verb.split(), *arguments, *self.option, "--json")
        assert done.returncode == 0, (verb, done.stderr)
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with a_server() as made:
        yield made


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of reports of three countries, and candidates."""
    folder = tmp_path_factory.mktemp("place")
    (folder / "collections").mkdir()
    for name in ("homepage", "other"):
        (folder / "collections" / f"{name}.toml").write_text(definition(name).to_toml())
    for seed, country in enumerate(FILES):
        population = folder / f"{country}.csv"
        population.write_text(f"string,frequency\n{country.lower()}.org,3\nc.org,2\n")
        done = rappor(
            *("simulate", "--population", population, "--reports", "2e4"),
            *("--preset", "exponential", "--seed", str(seed), "--output", folder / country),
        )
        assert done.returncode == 0, done.stderr
    (folder / "candidates.txt").write_text("nz.org\nch.org\nau.org\nc.org\nd.org\n")
    return folder


def filled(place: Path, folder: Path, option: tuple[str, str]) -> Side:
    """A store with the reports of all countries, each of another day."""
    folder.mkdir()
    shutil.copytree(place / "collections", folder / "collections")
    side = Side(folder, option)
    for country, period in FILES.items():
        said = side.run(
            *("import", place / country / "reports.parquet", "--collection", "homepage"),
            *("--collections", side.definitions, "--period", str(period)),
            *("--dimension", f"country={country}"),
        )
        assert said.startswith("20,000 reports of reports.parquet counted in homepage v1")
    return side


@pytest.fixture(scope="module")
def sides(server: Server, place: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Side]:
    """The same reports in a data folder and in a database."""
    folder = tmp_path_factory.mktemp("sides")
    return [
        filled(place, folder / "sqlite", ("--data", str(folder / "sqlite" / "data"))),
        filled(place, folder / "postgres", ("--store", server.new_store())),
    ]


@pytest.fixture
def copies(sides: list[Side], server: Server, tmp_path: Path) -> list[Side]:
    """Copies that a test may change, each made from a backup of the store of the other kind."""
    options = [("--data", str(tmp_path / "data")), ("--store", server.new_store())]
    made = []
    for side, option in zip(reversed(sides), options, strict=True):
        backup = tmp_path / f"{option[0]}.backup"
        side.run("backup", "--output", backup)
        folder = tmp_path / option[0]
        shutil.copytree(sides[0].definitions, folder / "collections")
        made.append(Side(folder, option))
        made[-1].run("restore", backup)
    return made


def same(found: list[Any]) -> Any:
    """What both sides gave, if it is the same."""
    one, other = found
    assert one == other
    return one


def status(side: Side) -> Any:
    """What status says, without what depends on the disk."""
    found = side.document("status")
    del found["data"], found["disk"], found["last_retention"]
    return found


def test_status_tells_the_same(sides: list[Side]) -> None:
    found = same([status(side) for side in sides])
    assert found["problems"] == []
    reports = {row["collection"]: row["reports"] for row in found["collections"]}
    assert reports == {"homepage": 60_000}


def test_a_file_is_imported_once(place: Path, sides: list[Side]) -> None:
    arguments = ("import", place / "NZ" / "reports.parquet", "--collection", "homepage")
    assert same([side.document(*arguments) for side in sides])["new"] is False


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--period", "all"),
        ("--period", "all", "--by", "country"),
        ("--by", "period"),
        ("--period", str(YESTERDAY), "--exact", "--all"),
    ],
    ids=" ".join,
)
def test_decodes_are_the_same(place: Path, sides: list[Side], options: tuple[str, ...]) -> None:
    listed = ("decode homepage", "--candidates", place / "candidates.txt", *options)
    same([side.document(*listed) for side in sides])
    assert "c.org" in same([side.run(*listed) for side in sides])


def test_comparisons_are_the_same(place: Path, sides: list[Side]) -> None:
    listed = ("compare homepage", "--candidates", place / "candidates.txt")
    assert "ch.org" in same([side.run(*listed) for side in sides])
    days = ("--period", str(LONG_AGO), "--with", str(TODAY))
    same([side.document(*listed, *days) for side in sides])


def test_exported_counts_have_the_same_bytes(sides: list[Side]) -> None:
    for ending in ("csv", "parquet"):
        for side in sides:
            side.run("export homepage", "--output", side.folder / f"counts.{ending}")
        same([(side.folder / f"counts.{ending}").read_bytes() for side in sides])


def test_exported_reports_are_the_same_in_another_order(sides: list[Side]) -> None:
    found = []
    for side in sides:
        side.run("export homepage", "--reports", "--output", side.folder / "reports.csv")
        lines = (side.folder / "reports.csv").read_text().splitlines()
        found.append((lines[0], sorted(line.partition(",")[2] for line in lines[1:])))
    assert len(same(found)[1]) == 60_000


def test_lakes_hold_the_same(sides: list[Side]) -> None:
    for side in sides:
        said = side.run("lake seal", side.folder / "lake")
        assert "20,000 reports" in said  # of the period that is closed
        done = rappor("aggregate", side.folder / "lake", "--output", side.folder / "lake.csv")
        assert done.returncode == 0, done.stderr
    same([(side.folder / "lake.csv").read_bytes() for side in sides])


def test_an_upgrade_has_nothing_to_do(sides: list[Side]) -> None:
    found = [side.document("upgrade --check", "--collections", side.definitions) for side in sides]
    states = [
        {line["name"]: line["state"] for line in document["checks"] if line["state"] != "note"}
        for document in found
    ]
    assert [document["ok"] for document in found] == [True, True]
    assert states[1].items() <= states[0].items()  # a database has no folder to look at
    assert f" {sides[1].where}: " in rappor("upgrade", "--check", *sides[1].option).stdout
    assert sides[1].run("upgrade").startswith("STORE: ready, 1 definitions")


def test_python_sees_the_same(place: Path, sides: list[Side]) -> None:
    names = (place / "candidates.txt").read_text().split()
    found = []
    for side in sides:
        data = package.open(side.where)
        decoded = data.decode("homepage", names, period="all")
        found.append(
            (
                data.collections,
                data.periods("homepage"),
                data.dimensions("homepage"),
                data.counts("homepage", period="all"),
                str(decoded),
                str(data.compare("homepage", names)),
            )
        )
    assert same(found)[1] == tuple(sorted(map(str, FILES.values())))


def test_a_backup_is_restored_to_either_store(sides: list[Side], copies: list[Side]) -> None:
    same([status(side) for side in (*sides[:1], *copies[:1])])
    same([status(side) for side in copies])
    for side, name in zip(copies, ("data", "store"), strict=True):
        side.run("export homepage", "--output", side.folder / f"{name}.csv")
    for side in sides:
        side.run("export homepage", "--output", side.folder / "restored.csv")
    expected = (sides[0].folder / "restored.csv").read_bytes()
    for side, name in zip(copies, ("data", "store"), strict=True):
        assert (side.folder / f"{name}.csv").read_bytes() == expected


def test_a_restored_store_is_not_restored_again(copies: list[Side], tmp_path: Path) -> None:
    for side, option in zip(copies, ("--data", "--store"), strict=True):
        said = side.run("restore", tmp_path / f"{option}.backup", code=3)
        assert "Traceback" not in said
        assert same([status(each) for each in copies])["problems"] == []


def test_retention_removes_the_same(copies: list[Side]) -> None:
    for side in copies:
        short = definition(keep_reports_days=20)
        (side.definitions / "homepage.toml").write_text(short.to_toml())
    arguments = ("retain", "--collections")
    for more in (("--dry-run",), ()):
        assert same([side.document(*arguments, side.definitions, *more) for side in copies])
    rows = same([status(side) for side in copies])["collections"]
    assert {row["collection"]: row["kept_reports"] for row in rows}["homepage"] == 40_000


def test_retiring_deletes_the_same(copies: list[Side]) -> None:
    arguments = ("collection retire homepage", "--collections")
    for more in (("--dry-run",), ()):
        found = [side.document(*arguments, side.definitions, *more) for side in copies]
        for document, side in zip(found, copies, strict=True):
            text = json.dumps(document).replace(str(side.folder), "FOLDER")
            document.clear()
            document["text"] = text.replace(side.where, "STORE")
        same(found)
    rows = same([status(side) for side in copies])["collections"]
    assert {row["collection"]: row["reports"] for row in rows} == {"homepage": 0}
    same([(side.definitions / "homepage.toml").read_text() for side in copies])


def test_audit_logs_tell_the_same(copies: list[Side]) -> None:
    found = []
    for side in copies:
        side.run("export homepage", "--output", side.folder / "again.csv")
        log = side.document("status", "--audit")["audit"]
        found.append([(entry["actor"], entry["action"]) for entry in log])
    assert same(found)[-1][1] == "export"


def test_a_nightly_run_writes_the_same_files(place: Path, sides: list[Side]) -> None:
    results = []
    for side in sides:
        data = side.folder / "linked"
        if side.option[0] == "--store":
            data.mkdir()
            (data / "store.url").write_text(f"{side.where}\n")
        else:
            data = Path(side.where)
        jobs = side.folder / "jobs.toml"
        jobs.write_text(
            f'data = "{data}"\noutput = "results"\n[[jobs]]\ncollection = "homepage"\n'
            f'periods = "all"\ncandidates = "{place / "candidates.txt"}"\n'
        )
        done = rappor("run", jobs)
        assert done.returncode == 0, done.stderr
        files = sorted((side.folder / "results").rglob("*.csv"))
        results.append([(file.name, file.read_bytes()) for file in files])
    assert len(same(results)) == 3


def document(visit: Visit, page: str) -> Any:
    """What a page says as JSON, or None while it is being decoded; a look at it starts that."""
    visit.get(page.removesuffix(".json"))
    answer = visit.get(page)
    return json.loads(answer.body) if answer.status == 200 else None


def test_pages_show_the_same(place: Path, sides: list[Side], tmp_path: Path) -> None:
    pages = ("/collections.json", "/collections/homepage.json", "/collections/homepage/trends.json")
    found = []
    for side in sides:
        sample = Sample(tmp_path / side.option[0])
        shutil.copytree(side.definitions, sample.definitions)
        listed = sample.definitions / "homepage.candidates.txt"
        listed.write_bytes((place / "candidates.txt").read_bytes())
        if side.option[0] == "--data":
            shutil.copytree(side.where, sample.data)
        else:
            sample.data.mkdir()
        options = side.option if side.option[0] == "--store" else ()
        with serving(sample, *options) as dashboard:
            visit = dashboard.browser(Role.ANALYST)
            found.append([wait_for(partial(document, visit, page), page) for page in pages])
    same(found)


# What can be wrong with a database.


@pytest.fixture
def silent() -> Iterator[int]:
    """A port where nobody listens."""
    with held_port() as port:
        yield port


VERBS = (
    ("status",),
    ("export", "homepage", "--output", "x.csv"),
    ("retain", "--dry-run"),
    ("backup", "--output", "x.backup"),
    ("decode", "homepage"),
    ("compare", "homepage"),
    ("lake", "seal", "lake"),
    ("upgrade",),
)


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_a_database_that_is_wrong_is_one_sentence(
    server: Server, silent: int, tmp_path: Path, verb: tuple[str, ...]
) -> None:
    down = f"postgresql://ada@{LOOPBACK}:{silent}/rappor"
    empty = server.url(server.new_database())
    cases = [
        ("mysql://db.example.org/rappor", 3, "mysql:// is not supported"),
        ("db.example.org", 2, "must be a URL"),
        (down, 1, "the database cannot be reached (Connection refused); check the address"),
        (server.url("nothing_here"), 1, "the server has no such database; create it"),
    ]
    if verb != ("upgrade",):  # which makes the tables
        cases.append((empty, 3, "there is no store in this database"))
    for url, code, words in cases:
        done = rappor(*verb, "--store", url, cwd=tmp_path)
        assert done.returncode == code, (url, done.stderr)
        assert words in done.stderr, done.stderr
        assert len(done.stderr.splitlines()) <= 2, done.stderr
        assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_password_is_in_no_message(server: Server, silent: int) -> None:
    url = f"postgresql://ada:s3cret@{LOOPBACK}:{silent}/rappor"
    done = rappor("status", "--store", url, fresh=True)
    assert done.returncode == 1
    assert "s3cret" not in done.stdout + done.stderr
    assert f"postgresql://ada@{LOOPBACK}" in done.stderr


def test_counts_of_collectors_and_imports_add_up(sides: list[Side]) -> None:
    totals = []
    for side in sides:
        with closing(open_store(side.where, read_only=True)) as store:
            assert store.check() == []
            totals.append(np.sum([cell.totals for cell in store.counts("homepage")]))
    assert same(totals) == 60_000
