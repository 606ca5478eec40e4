"""What `import rappor` gives, what it costs, and what is nowhere in it."""

import ast
import inspect
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rappor

SOURCE = Path(__file__).parents[2] / "src"
BARE = ("-I", "-S")  # no environment, no site-packages: the standard library and what we add


def fresh(code: str, *flags: str) -> subprocess.CompletedProcess[str]:
    """Run code in a new interpreter that finds rappor by its source folder alone."""
    start = f"import sys; sys.path.insert(0, {str(SOURCE)!r})\n"
    return subprocess.run(
        [sys.executable, *flags, "-c", start + code],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,  # ends a process that hangs
    )


# Names.


def test_public_names_are_these_and_no_others() -> None:
    assert rappor.__all__ == [
        "Association",
        "Client",
        "Collection",
        "Counts",
        "DecodeError",
        "Decoded",
        "EncodeError",
        "Encoder",
        "EntropyError",
        "Field",
        "Histogram",
        "LedgerError",
        "MissingExtraError",
        "OneTime",
        "PairCounts",
        "Params",
        "ParamsError",
        "Population",
        "Ranges",
        "RapporError",
        "Report",
        "StoreError",
        "View",
        "WireError",
        "Workspace",
        "__version__",
        "aggregate",
        "associate",
        "attack",
        "bloom_positions",
        "charts",
        "compare",
        "decode",
        "decoding",
        "diagnose",
        "mechanism",
        "new_secret",
        "open",
        "plan",
        "planning",
        "privacy",
        "simulate",
        "smooth",
    ]
    assert all(hasattr(rappor, name) for name in rappor.__all__)


LAZY = [
    "Association",
    "Client",
    "Collection",
    "Counts",
    "Decoded",
    "Histogram",
    "PairCounts",
    "Population",
    "Workspace",
    "aggregate",
    "associate",
    "attack",
    "charts",
    "compare",
    "decode",
    "decoding",
    "diagnose",
    "open",
    "plan",
    "planning",
    "simulate",
    "smooth",
]


def test_names_that_need_an_extra_are_these_and_are_shown() -> None:
    assert sorted(rappor._LAZY) == LAZY
    assert dir(rappor) == rappor.__all__
    assert set(LAZY) < set(rappor.__all__)


def test_names_that_need_an_extra_are_what_they_are_called() -> None:
    import rappor.aggregate.counts
    import rappor.decoding.decode
    import rappor.decoding.result

    assert rappor.Counts is rappor.aggregate.counts.Counts
    assert rappor.Decoded is rappor.decoding.result.Decoded
    assert rappor.decode is rappor.decoding.decode.decode
    for package in ("aggregate", "charts", "decoding", "simulate"):
        assert getattr(rappor, package).__name__ == f"rappor.{package}"
    assert callable(rappor.aggregate.count)
    assert callable(rappor.simulate.counts)
    assert callable(rappor.charts.results)


@pytest.mark.slow
def test_the_readers_first_program_decodes() -> None:
    code = """
import rappor
params = rappor.Params(k=128, h=2, m=16, f=0.5, p=0.5, q=0.75)
counts = rappor.simulate.counts({"a.org": 3, "b.org": 1}, params, reports=10**6, seed=7)
decoded = rappor.decode(counts, ["a.org", "b.org", "c.org"])
print(*(row.string for row in decoded.rows[:2] if row.detected), type(decoded) is rappor.Decoded)
"""
    done = fresh(code, "-W", "error")
    assert (done.stdout, done.stderr) == ("a.org b.org True\n", "")


@pytest.mark.parametrize(
    "module",
    ["rappor.client", "rappor.collection", "rappor.mechanism", "rappor.privacy", "rappor.wire"],
)
def test_every_listed_name_of_a_package_exists(module: str) -> None:
    package = __import__(module, fromlist=["__all__"])
    assert package.__all__ == sorted(package.__all__, key=lambda name: (name.upper() != name, name))
    assert all(hasattr(package, name) for name in package.__all__)


def test_the_errors_are_one_tree_with_the_builtins_that_people_catch() -> None:
    tree = {
        rappor.ParamsError: ValueError,
        rappor.EncodeError: ValueError,
        rappor.WireError: ValueError,
        rappor.DecodeError: ValueError,
        rappor.MissingExtraError: ImportError,
        rappor.EntropyError: Exception,
        rappor.LedgerError: Exception,
        rappor.StoreError: Exception,
    }
    for error, builtin in tree.items():
        assert issubclass(error, rappor.RapporError)
        assert issubclass(error, builtin)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'rappor' has no attribute 'nonsense'"):
        _ = rappor.nonsense
    with pytest.raises(ImportError):
        exec("from rappor import nonsense", {})


# What importing costs.

LOADED = """
before = set(sys.modules)
import rappor, json
print(json.dumps(sorted({name.partition(".")[0] for name in set(sys.modules) - before})))
"""


@pytest.mark.parametrize("flags", [BARE, ("-I",)], ids=["bare", "with site-packages"])
def test_importing_rappor_loads_the_standard_library_only(flags: tuple[str, ...]) -> None:
    done = fresh(LOADED, *flags)
    assert done.stderr == ""
    loaded = set(json.loads(done.stdout))
    assert "rappor" in loaded
    assert loaded - {"rappor"} <= sys.stdlib_module_names


@pytest.mark.slow
def test_the_check_for_third_party_modules_would_see_one() -> None:
    done = fresh(LOADED.replace("import rappor,", "import rappor, numpy,"), "-I")
    assert "numpy" in json.loads(done.stdout)


def test_names_without_numpy_say_what_to_install() -> None:
    wanted = [name for name in LAZY if name not in ("Client", "Collection", "charts")]
    code = f"""
import rappor
for name in {wanted}:
    try:
        getattr(rappor, name)
    except rappor.MissingExtraError as error:
        assert isinstance(error, ImportError)
        print(error.extra, error.name, error, sep="|")
"""
    done = fresh(code, *BARE)
    assert done.stderr == ""
    lines = [line.split("|") for line in done.stdout.splitlines()]
    assert [line[:2] for line in lines] == [["analysis", f"rappor.{name}"] for name in wanted]
    assert all("pip install 'rappor[analysis]'" in message for _, _, message in lines)


def test_charts_need_nothing_until_one_is_drawn() -> None:
    done = fresh("import rappor; print(rappor.charts.Chart.__name__)", *BARE)
    assert (done.stdout, done.stderr) == ("Chart\n", "")


def test_the_client_needs_nothing_but_the_standard_library() -> None:
    code = LOADED.replace("import rappor,", "import rappor; rappor.Client; import")
    done = fresh(code, *BARE)
    assert done.stderr == ""
    assert set(json.loads(done.stdout)) - {"rappor"} <= sys.stdlib_module_names


def test_importing_decode_without_numpy_says_the_same() -> None:
    done = fresh("from rappor import decode", *BARE)
    assert done.returncode == 1
    assert "MissingExtraError" in done.stderr
    assert "pip install 'rappor[analysis]'" in done.stderr


# What is nowhere in what ships to a client.

CLIENT_SIDE = (
    "client",
    "collection",
    "mechanism",
    "privacy",
    "wire",
    "params.py",
    "formats.py",
    "checks.py",
    "errors.py",
)
KNOW_THE_DAY = ("client", "collection")  # the others have no use for a clock


def client_files() -> list[Path]:
    found: list[Path] = []
    for name in CLIENT_SIDE:
        path = SOURCE / "rappor" / name
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return found


def imported_modules(file: Path) -> Iterator[str]:
    """Every module that a file imports, at its top or inside a function."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


@pytest.mark.parametrize("file", client_files(), ids=lambda file: file.stem)
def test_no_client_module_imports_a_weak_or_foreign_generator(file: Path) -> None:
    roots = {name.partition(".")[0] for name in imported_modules(file)}
    assert roots <= sys.stdlib_module_names | {"rappor"}
    assert not roots & {"random", "numpy", "uuid", "tempfile"}
    if file.relative_to(SOURCE / "rappor").parts[0] not in KNOW_THE_DAY:
        assert not roots & {"time", "datetime"}
    assert not [name for name in imported_modules(file) if name.startswith("rappor.testing")]


def test_the_scan_covers_the_client_and_sees_imports_inside_functions(tmp_path: Path) -> None:
    assert len(client_files()) > 20
    planted = tmp_path / "planted.py"
    planted.write_text("def f():\n    import random\n    from numpy.random import rand\n")
    assert set(imported_modules(planted)) == {"random", "numpy.random"}


def parameters(thing: Any) -> set[str]:
    """The names of all parameters of a class, its methods, or a function."""
    callables = [thing]
    if inspect.isclass(thing):
        callables += [
            method
            for name, method in inspect.getmembers(thing, callable)
            if name == "__init__" or not name.startswith("_")
        ]
    names: set[str] = set()
    for each in callables:
        try:
            names |= set(inspect.signature(each).parameters)
        except ValueError:  # a builtin that C does not describe
            continue
    return names


@pytest.mark.parametrize(
    "thing",
    [
        rappor.Client,
        rappor.Encoder,
        rappor.OneTime,
        rappor.Params,
        rappor.Ranges,
        rappor.new_secret,
    ],
    ids=lambda thing: thing.__name__,
)
def test_nothing_that_ships_to_a_client_takes_a_seed(thing: Any) -> None:
    assert not {name for name in parameters(thing) if "seed" in name or "random" in name}


def test_the_search_for_seeds_would_find_one() -> None:
    from rappor.testing import SeededEntropy

    assert "seed" in parameters(SeededEntropy)
    assert {"secret", "collection", "value"} <= parameters(rappor.Encoder)


@pytest.mark.slow
def test_what_people_wait_for_does_not_load_scipy_stats() -> None:
    """It takes longer to load than all the rest together."""
    modules = "rappor.decoding, rappor.planning, rappor.dashboard.process"
    done = fresh(f"import {modules}; print('scipy.stats' in sys.modules)")
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_decoding_exports_these_names() -> None:
    import rappor.decoding

    assert sorted(rappor.decoding.__all__) == dir(rappor.decoding) == DECODING
    for name in DECODING:
        assert getattr(rappor.decoding, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        rappor.decoding.nothing  # noqa: B018


DECODING = [
    "Association",
    "Candidates",
    "Check",
    "Compared",
    "Correction",
    "DecodeTask",
    "Decoded",
    "Decoder",
    "Design",
    "Diagnosis",
    "Estimate",
    "Finder",
    "Histogram",
    "Method",
    "Row",
    "build_design",
    "decode_basic",
    "decode_ordinal",
    "diagnose",
    "project_simplex",
    "read_map",
    "smooth",
]
