"""`rappor collection` in a real process: new, lint, diff, show, export."""

import json
from pathlib import Path

import pytest

from rappor.collection import Collection, lint
from rappor.params import Params
from rappor.privacy import epsilon_n
from rappor.privacy.rounding import up
from support.command import rappor

VECTORS = Path(__file__).parents[1] / "vectors" / "collections"


def new(file: Path, *options: str) -> Collection:
    done = rappor("collection", "new", file.stem, *options, "--output", file)
    assert (done.returncode, done.stdout) == (0, "")
    return Collection.read(file)


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--preset", "chrome", "--dimension", "country=NZ,AU", "--dimension", "os=mac"),
        ("--categories", "light,dark", "--period", "week"),
        ("--kind", "boolean", "--max-values", "2", "--values", "slow"),
        ("--edges", "18,65", "--expected-reports", "1e5"),
        ("--magnitudes", "10,0,6"),
        ("--field", "page=string", "--field", "beta=boolean"),
        ("--kind", "tuple", "--field", "page=string", "--field", "age=ordinal:18,65",
         "--field", "theme=category:light,dark", "--view", "page,theme=.5", "--view", "age=.5"),
        ("--kind", "bits", "--k", "4", "--h", "1", "--m", "1", "--f", ".5", "--p", ".5",
         "--q", ".75"),
        ("--k", "64", "--h", "1", "--m", "2", "--f", "0", "--p", ".4", "--q", ".6", "--one-time"),
        ("--budget", "--max-epsilon", "8", "--values", "fast"),
        ("--sensitivity", "high", "--review", "https://example.org/1", "--null-reports"),
        ("--platform", "web", "--account-secret", "--upload", "https://example.org/v1/reports"),
    ],
    ids=lambda options: " ".join(options) or "defaults",
)  # fmt: skip
def test_a_new_definition_lints_clean_whatever_is_asked_for(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    file = tmp_path / "thing.toml"
    made = new(file, *options)
    assert made.name == "thing"
    assert lint(made) == ()
    done = rappor("collection", "lint", file)
    assert (done.returncode, done.stdout) == (0, "1 definition: 0 errors, 0 warnings\n")


def test_a_new_definition_takes_the_parameters_of_a_plan(tmp_path: Path) -> None:
    planned = Params(64, 1, 16, 0.25, 0.25, 0.5)
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"plans": [{"params": planned.to_dict()}]}))
    assert new(tmp_path / "thing.toml", "--plan", str(plan)).params == planned
    refused = rappor("collection", "new", "thing", "--plan", plan, "--preset", "chrome")
    assert refused.returncode == 2
    assert "give one of --plan, --preset" in refused.stderr


def test_a_new_definition_on_standard_output_is_the_same_file(tmp_path: Path) -> None:
    made = new(tmp_path / "thing.toml", "--owner", "me")
    done = rappor("collection", "new", "thing", "--owner", "me")
    assert (done.returncode, done.stderr) == (0, "")
    assert Collection.from_toml(done.stdout) == made
    assert done.stdout == (tmp_path / "thing.toml").read_text()


def test_a_dash_is_standard_output(tmp_path: Path) -> None:
    new(tmp_path / "thing.toml")
    for words in (("new", "thing"), ("export", "thing.toml")):
        printed = rappor("collection", *words, "--output", "-", cwd=tmp_path)
        assert printed.stdout == rappor("collection", *words, cwd=tmp_path).stdout != ""
    assert [path.name for path in tmp_path.iterdir()] == ["thing.toml"]


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    file = tmp_path / "thing.toml"
    new(file, "--owner", "first")
    again = rappor("collection", "new", "thing", "--output", file)
    assert (again.returncode, again.stdout) == (3, "")
    assert "exists already; --force replaces it" in again.stderr
    assert Collection.read(file).owner == "first"
    new(file, "--owner", "second", "--force")
    assert Collection.read(file).owner == "second"


@pytest.mark.parametrize(
    "path", sorted(path for path in VECTORS.iterdir() if path.stem != "good"), ids=lambda p: p.stem
)
def test_lint_names_what_is_wrong_and_the_way_out(path: Path) -> None:
    done = rappor("collection", "lint", path, "--json")
    found = json.loads(done.stdout)
    ours = [each for each in found["findings"] if each["code"] == path.stem]
    assert len(ours) == 1
    assert done.returncode == (1 if found["errors"] else 0)
    assert done.stderr == ""
    assert rappor("collection", "lint", path, "--strict").returncode == 1
    told = rappor("collection", "lint", path).stdout
    assert f"{path.stem} ({ours[0]['source']})" in told
    assert "fix: " in told


def test_old_names_of_fields_and_options_are_read_with_a_warning(tmp_path: Path) -> None:
    made = new(tmp_path / "thing.toml", "--most-values", "2", "--values", "slow")
    assert made.max_values == 2
    text = (tmp_path / "thing.toml").read_text()
    (tmp_path / "thing.toml").write_text(text.replace("max_values =", "most_values ="))
    done = rappor("collection", "lint", tmp_path, "--json")
    (found,) = json.loads(done.stdout)["findings"]
    assert (done.returncode, found["code"], found["severity"]) == (0, "renamed-field", "warning")
    assert found["text"].startswith("most_values is the old name of max_values.")


def test_lint_goes_on_after_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    new(tmp_path / "good.toml")
    (tmp_path / "bad.toml").write_text('name = "x"\nsurprise = 1\n')
    copy = (tmp_path / "good.toml").read_text()
    (tmp_path / "twin.toml").write_text(copy)
    done = rappor("collection", "lint", tmp_path, "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert (found["files"], found["errors"], found["warnings"]) == (3, 2, 0)
    texts = [(each["code"], each["collection"], each["text"]) for each in found["findings"]]
    assert texts == [
        (
            "invalid-definition",
            "bad.toml",
            "surprise is not a key of a collection; rename or remove it",
        ),
        (
            "invalid-definition",
            "twin.toml",
            "collection good has version 1 twice: remove one of its files, or give it the next "
            "number",
        ),
    ]


def test_diff_says_how_much_more_a_client_may_spend(tmp_path: Path) -> None:
    old, more = tmp_path / "old.toml", tmp_path / "more.toml"
    new(old, "--max-values", "2", "--values", "slow")
    text = old.read_text().replace("max_values = 2", "max_values = 5")
    lines = [line for line in text.splitlines() if not line.startswith("max_epsilon")]
    more.write_text("\n".join(lines).replace("version = 1", "version = 2") + "\n")
    done = rappor("collection", "diff", old, more)
    assert done.returncode == 0, done.stderr
    before, after = (up(Collection.read(file).max_epsilon) for file in (old, more))
    assert f"{before} → {after}" in done.stdout
    assert f"may spend ε = {after} instead of {before}." in " ".join(done.stdout.split())


def test_diff_refuses_a_change_of_parameters_without_a_version(tmp_path: Path) -> None:
    old, changed = tmp_path / "thing.toml", tmp_path / "changed.toml"
    new(old)
    text = old.read_text()
    changed.write_text(text.replace("q = 0.75", "q = 0.7"))
    refused = rappor("collection", "diff", old, changed)
    assert (refused.returncode, refused.stderr) == (1, "")
    assert "refused: params changed: give it version 2" in refused.stdout
    changed.write_text(changed.read_text().replace("version = 1", "version = 2"))
    allowed = rappor("collection", "diff", old, changed)
    assert allowed.returncode == 0
    assert "one report under each costs ε = 1.822" in allowed.stdout
    found = json.loads(rappor("collection", "diff", old, changed, "--json").stdout)
    assert (found["allowed"], found["same_memo"]) == (True, True)
    assert [each["field"] for each in found["changes"]] == ["params"]
    longer = text.replace("keep_reports_days = 0", "keep_reports_days = 30")
    changed.write_text(longer)
    warned = rappor("collection", "diff", old, changed)
    assert warned.returncode == 0
    assert "review: another person should approve this change before it is used" in warned.stdout
    same = rappor("collection", "diff", old, old)
    assert (same.returncode, same.stdout.splitlines()[-1]) == (0, "allowed")


def test_show_tells_a_person_what_leaves_what_is_kept_and_what_it_costs(tmp_path: Path) -> None:
    file = tmp_path / "thing.toml"
    new(file, "--dimension", "country=NZ,AU", "--description", "Which thing.",
        "--keep-reports-days", "30", "--reports-per-period", "2")  # fmt: skip
    told = rappor("collection", "show", file)
    assert (told.returncode, told.stderr) == (0, "")
    for words in (
        "Which thing.",
        "128 randomized bits (16 bytes) and the client's cohort, one of 8; at most 2 reports a day",
        "In clear, outside ε: country (NZ, AU or other)",
        "Single reports for 30 days. Everything is deleted on ",
        "one report 1.075",
        f"all reports of one day, one value {up(epsilon_n(Params.preset('windows'), 2))}",
        "all reports on one unchanged value 4.395",
    ):
        assert " ".join(words.split()) in " ".join(told.stdout.split())
    found = json.loads(rappor("collection", "show", file, "--json").stdout)
    assert found["summary"]["epsilon_report"] == pytest.approx(1.07429, abs=1e-5)
    assert found["dimensions"] == {"country": ["NZ", "AU"]}
    assert found["params"]["k"] == 128


def test_infinity_is_the_text_inf_in_json(tmp_path: Path) -> None:
    file = tmp_path / "thing.toml"
    new(file, "--budget", "--max-epsilon", "8")
    found = json.loads(rappor("collection", "show", file, "--json").stdout)
    assert found["summary"]["epsilon_value"] == "inf"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((), 2, "give an action: new, lint, diff, show, export or retire"),
        (("renew",), 2, "invalid choice: 'renew'"),
        (("lint", "--colour", "x"), 2, "rappor collection lint: unrecognized arguments: --colour"),
        (("lint", "absent.toml"), 3, "absent.toml: no such file"),
        (("show", "absent.toml"), 3, "absent.toml: no such file or folder"),
        (("new", "Thing"), 3, "name must be 1 to 63"),
        (("new", "thing", "--kind", "category"), 3, "kind 'category' needs categories"),
        (("new", "thing", "--kind", "bits"), 3, "kind 'bits' needs params"),
        (("new", "thing", "--expires", "soon"), 2, "--expires takes a date"),
        (("new", "thing", "--dimension", "os"), 2, "--dimension takes NAME=A,B"),
        (("new", "thing", "--magnitudes", "10"), 2, "--magnitudes takes three whole numbers"),
        (("new", "thing", "--edges", "1", "--magnitudes", "10,0,1"), 2, "one of --edges and"),
        (("new", "thing", "--max-epsilon", "nan"), 3, "max_epsilon must be a number above 0"),
        (("new", "thing", "--one-time"), 3, "one_time needs f = 0"),
    ],
)
def test_errors_are_one_line_without_a_traceback(
    arguments: tuple[str, ...], code: int, words: str
) -> None:
    done = rappor("collection", *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 2


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    done = rappor("collection", "show", tmp_path / "absent.toml", "--debug")
    assert done.returncode == 3
    assert "Traceback" in done.stderr


@pytest.mark.parametrize("action", ["new", "lint", "diff", "show"])
def test_every_action_has_help_with_an_example(action: str) -> None:
    done = rappor("collection", action, "--help")
    assert done.returncode == 0
    assert f"Example: rappor collection {action}" in done.stdout.replace("\n", " ")


def test_force_is_not_recommended_where_it_would_not_help(tmp_path: Path) -> None:
    for more in ((), ("--force",)):
        done = rappor("collection", "new", "theme", "--output", tmp_path, *more)
        assert (done.returncode, done.stdout) == (3, "")
        assert done.stderr == f"rappor collection: {tmp_path}: this is a folder; name a file\n"


def test_export_writes_what_clients_read(tmp_path: Path) -> None:
    made = new(tmp_path / "thing.toml", "--categories", "light,dark,ünï", "--owner", "somebody")
    printed = rappor("collection", "export", tmp_path / "thing.toml", "--format", "json")
    assert (printed.returncode, printed.stderr) == (0, "")
    assert printed.stdout == made.to_client_json() + "\n"
    file = tmp_path / "thing.json"
    done = rappor("collection", "export", tmp_path / "thing.toml", "--output", file)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", f"wrote {file}\n")
    assert file.read_text(encoding="utf-8") == printed.stdout
    refused = rappor("collection", "export", tmp_path / "thing.toml", "--output", file)
    assert (refused.returncode, refused.stdout) == (3, "")
    assert "exists already; --force replaces it" in refused.stderr
    assert rappor(
        "collection", "export", tmp_path / "thing.toml", "--output", file, "--force"
    ).returncode == 0  # fmt: skip


def test_export_says_that_lint_forbids_a_definition(tmp_path: Path) -> None:
    done = rappor("collection", "export", VECTORS / "no-expiry.toml")
    assert done.returncode == 0
    assert json.loads(done.stdout)["format"] == "rappor-collection-v1"
    assert "lint finds 1 error (no-expiry): do not release this to clients" in done.stderr
    unreadable = tmp_path / "bad.toml"
    unreadable.write_text("name = 7\n")
    assert rappor("collection", "export", unreadable).returncode == 3


TUPLE = (
    "--field", "page=string", "--field", "age=ordinal:18,65",
    "--field", "theme=category:light,dark", "--view", "page,theme=.75", "--view", "age=.25",
)  # fmt: skip


def test_a_tuple_is_shown_with_its_fields_and_the_cohorts_of_its_views(tmp_path: Path) -> None:
    file = tmp_path / "thing.toml"
    new(file, *TUPLE)
    text = " ".join(rappor("collection", "show", file).stdout.split())
    assert "Field page: string." in text
    assert "Field age: ordinal (3 ranges: < 18; 18 to < 65; >= 65)." in text
    assert "Field theme: category (2 categories: light, dark)." in text
    assert "Views by cohorts: page with theme in 6; age in 2." in text
    facts = json.loads(rappor("collection", "show", file, "--json").stdout)
    assert facts["views"][1] == {"fields": ["age"], "share": 0.25, "cohorts": 2}
    assert facts["fields"][1]["ranges"]["edges"] == ["18", "65"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--field", "page"), "--field takes NAME=KIND"),
        (("--field", "page=string:a", "--field", "b=boolean"), "only category and ordinal"),
        (("--field", "page=text", "--field", "b=boolean"), "kind must be one of string"),
        ((*TUPLE, "--view", "page"), "--view takes NAMES=SHARE"),
        ((*TUPLE, "--view", "page=much"), "the share of --view must be a number"),
        (("--view", "page=1"), "views need fields"),
    ],
)
def test_fields_and_views_that_are_none_are_refused(
    tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    done = rappor("collection", "new", "thing", *options, "--output", tmp_path / "thing.toml")
    assert done.returncode in (2, 3)
    assert message in done.stderr


def test_a_tuple_is_explained_and_encoded_by_its_view(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(range(32)))
    given = ("--kind", "tuple", *TUPLE, "--preset", "windows", "--secret-file", secret)
    value = json.dumps({"page": "x.org", "age": 20, "theme": "dark"})
    done = rappor("explain", value, *given, "--cohort", "7")
    assert "(this cohort reports only: age)" in done.stdout
    facts = json.loads(rappor("explain", value, *given, "--cohort", "0", "--json").stdout)
    assert facts["view"] == ["page", "theme"]
    assert facts["signal"].count("1") == 2
    assert rappor("encode", value, *given).stdout.startswith("cohort,rappor\n")
    for wrong in ('{"page": "x.org"}', "x.org"):
        refused = rappor("explain", wrong, *given)
        assert refused.returncode == 3
        assert "x.org" not in refused.stderr
