"""The wheel in an empty environment: nothing else comes with it, and everything in it works."""

import json
import os
import subprocess
import sys
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PIP = (sys.executable, "-m", "pip", "--isolated", "--disable-pip-version-check")


def run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that pip builds from this repository, without reaching any network."""
    folder = tmp_path_factory.mktemp("wheel")
    run(*PIP, "wheel", "-q", "--no-build-isolation", "--no-deps", "--no-index", "-w", folder, ROOT)
    (built,) = folder.glob("rappor-*.whl")
    return built


@pytest.fixture(scope="module")
def bin_folder(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of an environment that holds the wheel and nothing else, not even pip."""
    venv = tmp_path_factory.mktemp("empty") / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", venv)
    found = venv / ("Scripts" if os.name == "nt" else "bin")
    # Without --no-deps: an unconditional requirement would be looked for, and not be found.
    run(*PIP, "--python", found / "python", "install", "-q", "--no-index", wheel)
    return found


def test_nothing_but_rappor_is_installed(bin_folder: Path) -> None:
    listed = json.loads(run(*PIP, "--python", bin_folder / "python", "list", "--format=json"))
    assert [package["name"] for package in listed] == ["rappor"]


def test_the_command_works_and_knows_its_version(bin_folder: Path) -> None:
    version = run(bin_folder / "python", "-I", "-c", "import rappor; print(rappor.__version__)")
    assert run(bin_folder / "rappor", "--version") == f"rappor {version}"
    facts = json.loads(run(bin_folder / "rappor", "privacy", "--preset", "windows", "--json"))
    assert facts["kind"] == "string"


def test_decode_says_what_to_install(bin_folder: Path) -> None:
    done = subprocess.run(
        [bin_folder / "python", "-I", "-c", "import rappor; rappor.decode"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "MissingExtraError" in done.stderr
    assert "pip install 'rappor[analysis]'" in done.stderr


def test_wheel_metadata_require_nothing_without_an_extra(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = HeaderParser().parsestr(archive.read(name).decode())
    required = metadata.get_all("Requires-Dist", [])
    assert required
    assert [line for line in required if "extra ==" not in line] == []
    assert set(metadata.get_all("Provides-Extra", [])) == {
        "all",
        "analysis",
        "postgres",
        "server",
        "spark",
    }
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"


def test_wheel_holds_every_source_file_the_type_marker_and_the_licence(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    source = {path.relative_to(ROOT / "src").as_posix() for path in ROOT.glob("src/rappor/**/*.py")}
    assert source | {"rappor/py.typed"} <= names
    rest = {name for name in names if not name.startswith("rappor/")}
    assert all(".dist-info/" in name for name in rest)
    assert any(name.endswith("LICENSE") for name in rest)


@pytest.mark.long
def test_a_second_build_from_the_source_archive_is_equal_byte_by_byte(tmp_path: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, 'tools'); import dist; from pathlib import Path\n"
        "work = Path(sys.argv[1]); sdist, wheel = dist.build(dist.ROOT, work / 'first')\n"
        "for first, second in zip((sdist, wheel), dist.build_again(sdist, work), strict=True):\n"
        "    dist.check_equal(first, second)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
