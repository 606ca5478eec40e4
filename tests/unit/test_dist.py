"""`make dist`: the checks of a release notice what is wrong with one."""

import importlib.util
import io
import re
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
INFO = ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")
COMMITTED = ("README.md", "src/rappor/__init__.py", "src/rappor/py.typed", ".ci/run")
IN_PACKAGE = ("rappor/__init__.py", "rappor/py.typed")


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("dist", ROOT / "tools" / "dist.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["dist"] = module  # where dataclasses look for the names of types
    spec.loader.exec_module(module)
    return module


dist = load()


def archives(folder: Path, source: tuple[str, ...], package: tuple[str, ...]) -> tuple[Path, Path]:
    sdist, wheel = folder / "rappor-1.tar.gz", folder / "rappor-1-py3-none-any.whl"
    with tarfile.open(sdist, "w:gz") as tar:
        for name in source:
            tar.addfile(tarfile.TarInfo(f"rappor-1/{name}"), io.BytesIO())
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in [*package, *(f"rappor-1.dist-info/{name}" for name in INFO)]:
            archive.writestr(name, "")
    return sdist, wheel


def test_archives_that_hold_what_is_committed_pass(tmp_path: Path) -> None:
    source = ("PKG-INFO", *COMMITTED[:3])
    dist.check_contents(*archives(tmp_path, source, IN_PACKAGE), COMMITTED)


@pytest.mark.parametrize(
    ("source", "package", "message"),
    [
        (COMMITTED[:2], IN_PACKAGE, "lacks src/rappor/py.typed"),
        ((*COMMITTED[:3], "docs/notes.md"), IN_PACKAGE, "holds docs/notes.md, which is not comm"),
        (COMMITTED[:3], IN_PACKAGE[:1], "whl lacks rappor/py.typed"),
        (COMMITTED[:3], (*IN_PACKAGE, "tests/x.py"), "whl holds tests/x.py"),
    ],
)
def test_archives_that_lack_a_file_or_hold_another_are_refused(
    source: tuple[str, ...], package: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    with pytest.raises(dist.DistError, match=message):
        dist.check_contents(*archives(tmp_path, ("PKG-INFO", *source), package), COMMITTED)


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="an unpacked archive has no list of files")
def test_the_source_archive_takes_every_committed_file_and_folder() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]
    always = {
        ".gitignore",
        "LICENSE",
        "README.md",
        "pyproject.toml",
    }  # the build backend's own list
    released = {name for name in dist.tracked() if not name.startswith(dist.NOT_RELEASED)}
    tops = {name.partition("/")[0] for name in released}
    assert tops == always | set(build["targets"]["sdist"]["only-include"])


def test_files_with_other_bytes_are_refused(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_bytes(b"1")
    second.write_bytes(b"1")
    dist.check_equal(first, second)
    second.write_bytes(b"2")
    with pytest.raises(dist.DistError, match="other bytes"):
        dist.check_equal(first, second)


def test_a_command_that_fails_ends_the_release_with_what_it_said() -> None:
    with pytest.raises(dist.DistError, match=r"exit code 3\nno room"):
        dist.run("sh", "-c", "echo no room; exit 3")


def test_the_guide_names_every_file_of_a_release() -> None:
    guide = (ROOT / "docs" / "release.md").read_text("utf-8")
    for name in (
        dist.PINNED,
        dist.PINNED_EXTRAS,
        dist.SUMS,
        ".cdx.json",
        ".tar.gz",
        "-py3-none-any.whl",
    ):
        assert f"{name}`" in guide


def test_checksums_are_those_of_sha256sum(tmp_path: Path) -> None:
    (tmp_path / "b.whl").write_bytes(b"")
    dist.write_sums(tmp_path)
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert (tmp_path / dist.SUMS).read_text("utf-8") == f"{empty}  b.whl\n"


PACKAGES = {
    "rappor": dist.Package(
        extras=("analysis", "server", "all"),
        requires=(
            "rappor[analysis,server]; extra == 'all'",
            "numpy>=2; extra == 'analysis'",
            "Web.Frame[fast]>=1; extra == 'server'",
            "wincon; extra == 'server' and sys_platform == 'win32'",
        ),
    ),
    "numpy": dist.Package(),
    "web-frame": dist.Package(requires=("loop_er", "speed; extra == 'fast'")),
    "loop-er": dist.Package(requires=("web-frame",)),  # a circle ends
    "speed": dist.Package(),
}


def test_an_extra_needs_what_its_packages_need_on_this_platform() -> None:
    server = {"web-frame", "loop-er", "speed"}
    assert dist.needed_by_extra(PACKAGES) == {
        "analysis": {"numpy"},
        "server": server,
        "all": {"numpy", *server},  # it names two other extras of rappor itself
    }


def test_an_extra_whose_package_is_not_installed_ends_the_release() -> None:
    without = {name: package for name, package in PACKAGES.items() if name != "speed"}
    with pytest.raises(dist.DistError, match=r"the extra server needs speed.*make constraints"):
        dist.needed_by("server", without)


def test_the_bill_says_which_extra_needs_a_package() -> None:
    components = [{"name": "NumPy"}, {"name": "speed", "properties": [{"name": "x"}]}]
    dist.label_components(components, {"analysis": {"numpy", "speed"}, "server": {"speed"}})
    extra = {"name": "rappor:extra"}
    assert components[0]["properties"] == [extra | {"value": "analysis"}]
    assert components[1]["properties"][1:] == [
        extra | {"value": "analysis"},
        extra | {"value": "server"},
    ]


@pytest.mark.parametrize(
    ("listed", "message"),
    [(["numpy"], "the bill lacks speed"), (["numpy", "speed", "x"], "holds x, which no extra")],
)
def test_a_bill_that_lacks_a_package_or_has_another_is_refused(
    listed: list[str], message: str
) -> None:
    components = [{"name": name} for name in listed]
    with pytest.raises(dist.DistError, match=message):
        dist.label_components(components, {"analysis": {"numpy", "speed"}})


def test_every_extra_is_pinned() -> None:
    from packaging.requirements import Requirement

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
        "optional-dependencies"
    ]
    pinned = (ROOT / dist.PINNED_EXTRAS).read_text("utf-8")
    names = set(re.findall(r"^([\w.-]+)(?:\[[\w,]+\])?==", pinned, re.MULTILINE))
    for lines in extras.values():
        wanted = {dist.normal(Requirement(line).name) for line in lines} - {"rappor"}
        assert wanted - {dist.normal(name) for name in names} == set(), "make constraints"
