"""`make dist`: build a release, try it as users will, and write what they verify it with.

    dist/rappor-X.tar.gz, dist/rappor-X-py3-none-any.whl
    dist/constraints-demo.txt     the hash of every file that analysis and server need
    dist/constraints-extras.txt   the same, for all extras
    dist/rappor-X.cdx.json        the packages of the extras, each with its extras (CycloneDX)
    dist/SHA256SUMS

Everything is made in a temporary folder; `dist` is replaced when all checks have passed.
docs/release.md tells when to run it.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PINNED = "constraints-demo.txt"
PINNED_EXTRAS = "constraints-extras.txt"
EXTRA_PROPERTY = "rappor:extra"  # of a component: an extra that needs it
SUMS = "SHA256SUMS"
# Sections of the README that a client without extras can follow.
CLIENT_SECTIONS = ("Engineer",)
# Of the repository, but of no use without it.
NOT_RELEASED = (".ci/", ".github/")
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")


class DistError(Exception):
    """The release is not as it should be."""


def say(text: str) -> None:
    """Print a line of progress."""
    print(text, file=sys.stderr, flush=True)


def run(*command: str | Path, cwd: Path = ROOT, env: dict[str, str] | None = None) -> str:
    """Run a command to its end and return what it prints; DistError if it fails."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env=os.environ | (env or {}),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        words = " ".join(str(word) for word in command)
        raise DistError(f"{words}\nexit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def tracked(root: Path = ROOT) -> list[str] | None:
    """The files that git knows, or None outside a clone (in an unpacked source archive)."""
    if not (root / ".git").exists():
        return None
    return run("git", "ls-files", "-z", cwd=root).split("\0")[:-1]


def epoch(root: Path = ROOT) -> str:
    """The time of every file in the archives: of the last commit, or of the unpacked archive."""
    if (root / ".git").exists():
        return run("git", "log", "-1", "--format=%ct", cwd=root).strip()
    return str(int((root / "pyproject.toml").stat().st_mtime))


def build(root: Path, output: Path) -> tuple[Path, Path]:
    """Build the source archive and the wheel of a folder; returns their paths."""
    env = {"SOURCE_DATE_EPOCH": epoch(root)}
    run(sys.executable, "-m", "hatchling", "build", "-d", output, cwd=root, env=env)
    (sdist,), (wheel,) = output.glob("*.tar.gz"), output.glob("*.whl")
    return sdist, wheel


def unpack(sdist: Path, folder: Path) -> Path:
    """Unpack a source archive; returns its only folder."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (root,) = folder.iterdir()
    return root


def build_again(sdist: Path, folder: Path) -> tuple[Path, Path]:
    """Build from the source archive: in another place, with other permissions."""
    root = unpack(sdist, folder / "unpacked")
    before = os.umask(0o077)
    try:
        return build(root, folder / "again")
    finally:
        os.umask(before)


def check_equal(first: Path, second: Path) -> None:
    """DistError unless two files have the same bytes."""
    if digest(first) != digest(second):
        raise DistError(f"{first.name}: a second build, from the source archive, has other bytes")


def digest(file: Path) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def difference(
    what: str, found: Iterable[str], wanted: Iterable[str], stray: str = "is not committed"
) -> None:
    """DistError unless an archive or a list holds the names that it should."""
    found, wanted = set(found), set(wanted)
    problems = [f"{what} lacks {name}" for name in sorted(wanted - found)]
    problems += [f"{what} holds {name}, which {stray}" for name in sorted(found - wanted)]
    if problems:
        raise DistError("\n".join(problems[:20]))


def check_contents(sdist: Path, wheel: Path, committed: Iterable[str]) -> None:
    """DistError unless both archives hold what is committed, and no more."""
    released = {name for name in committed if not name.startswith(NOT_RELEASED)}
    with tarfile.open(sdist) as archive:
        names = [member.name.partition("/")[2] for member in archive if member.isfile()]
    difference(sdist.name, names, released | {"PKG-INFO"})
    package = {name.removeprefix("src/") for name in released if name.startswith("src/rappor/")}
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    info = {name for name in names if ".dist-info/" in name}
    difference(wheel.name, set(names) - info, package)
    endings = {name.partition(".dist-info/")[2] for name in info}
    wanted = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}
    difference(wheel.name, endings, wanted)


def environment(folder: Path) -> Path:
    """Create an environment without anything, not even pip; returns its interpreter."""
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    return folder / "bin" / "python"


def install(python: Path, *arguments: str | Path) -> None:
    """Install into an environment, with the pip of this one."""
    run(*PIP, "--python", python, "install", "-qq", *arguments)


def run_readme(
    runner: Path, folder: Path, *options: str | Path, sections: Iterable[str] = ()
) -> None:
    """Run the blocks of the README of this repository with an installed wheel."""
    folder.mkdir()
    chosen = [word for section in sections for word in ("--section", section)]
    script = ROOT / "tests" / "support" / "code_blocks.py"
    page = ROOT / "README.md"
    env = {"HOME": str(folder), "DO_NOT_TRACK": ""}
    run(runner, "-I", script, page, "--folder", folder, *options, *chosen, cwd=folder, env=env)


def follow_install_lines(root: Path, wheel: Path) -> None:
    """Run what the README says about installing: in an unpacked source archive, next to dist."""
    sys.path.insert(0, str(ROOT / "tests"))
    from support.code_blocks import blocks

    (root / "dist").mkdir()
    shutil.copy(wheel, root / "dist")
    shutil.copy(root / PINNED, root / "dist")
    chosen = [
        block for block in blocks(root / "README.md") if block.marks.get("run by") == "make dist"
    ]
    if len(chosen) != 2:
        raise DistError("README.md: not two blocks that are marked `run by make dist`")
    for block in chosen:
        run("sh", "-e", "-c", block.code, cwd=root)
        run(root / "venv/bin/rappor", "privacy", "--preset", "windows", cwd=root.parent)
        shutil.rmtree(root / "venv")


def check_extra(client: Path, folder: Path) -> None:
    """DistError unless the line of MissingExtraError finds what the installed wheel names."""
    said = subprocess.run(
        [client, "-I", "-c", "import rappor; rappor.decode"],
        capture_output=True,
        text=True,
        check=False,
    ).stderr
    line = re.search(r"pip install '(rappor\[analysis\])'", said)
    if line is None:
        raise DistError(f"no install line in:\n{said}")
    report = folder / "report.json"
    install(client, "--dry-run", "--report", report, line[1])
    would = {each["metadata"]["name"].lower() for each in json.loads(report.read_text())["install"]}
    if "rappor" in would or not {"numpy", "numba", "scipy"} <= would:
        raise DistError(f"pip install '{line[1]}' would install {', '.join(sorted(would))}")


def write_sbom(python: Path, version: str, output: Path) -> None:
    """List the packages of an environment (CycloneDX), each with the extras that need it."""
    tool = Path(sys.executable).parent / "cyclonedx-py"
    made = ["--output-reproducible", "--spec-version", "1.6", "--output-format", "JSON"]
    named = ["--pyproject", ROOT / "pyproject.toml", "--mc-type", "library"]
    run(tool, "environment", python, *named, *made, "--output-file", output)
    text = output.read_text(encoding="utf-8")
    if "file://" in text or str(ROOT) in text:
        raise DistError(f"{output.name} names a place on this machine")
    content = json.loads(text)
    # The tool reads pyproject.toml, which takes the version from the package.
    content["metadata"]["component"] |= {"version": version, "purl": f"pkg:pypi/rappor@{version}"}
    packages = installed_packages(python)
    label_components(content["components"], needed_by_extra(packages))
    names = (normal(each["name"]) for each in content["components"])
    difference(output.name, names, packages.keys() - {"rappor"}, "is not installed")
    output.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def normal(name: str) -> str:
    """A package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


@dataclass(frozen=True, slots=True)
class Package:
    """An installed package: the extras that it has, and its requirements, as its metadata say."""

    extras: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()


def installed_packages(python: Path) -> dict[str, Package]:
    """The packages of an environment, by name."""
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    folder = run(python, "-I", "-c", code).strip()
    return {
        normal(found.metadata["Name"]): Package(
            tuple(found.metadata.get_all("Provides-Extra") or ()), tuple(found.requires or ())
        )
        for found in distributions(path=[folder])
    }


def needed_by(extra: str, packages: Mapping[str, Package]) -> set[str]:
    """What an extra of rappor needs on this platform, directly or not; DistError if one lacks."""
    from packaging.requirements import Requirement

    found: set[tuple[str, str]] = set()
    waiting = [("rappor", extra)]
    while waiting:
        name, wanted = waiting.pop()
        if (name, wanted) in found:
            continue
        if name not in packages:
            raise DistError(
                f"the extra {extra} needs {name}, which {PINNED_EXTRAS} lacks: make constraints"
            )
        found.add((name, wanted))
        for line in packages[name].requires:
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": wanted}):
                names = ("", *requirement.extras)
                waiting += [(normal(requirement.name), each) for each in names]
    return {name for name, _ in found} - {"rappor"}


def needed_by_extra(packages: Mapping[str, Package]) -> dict[str, set[str]]:
    """What each extra of rappor needs."""
    return {extra: needed_by(extra, packages) for extra in packages["rappor"].extras}


def label_components(components: Iterable[dict[str, Any]], needed: Mapping[str, set[str]]) -> None:
    """Write into each component which extras need it; DistError if none does, or one lacks."""
    listed = {normal(component["name"]): component for component in components}
    difference("the bill", listed, set().union(*needed.values()), "no extra needs")
    for name, component in listed.items():
        extras = sorted(extra for extra, names in needed.items() if name in names)
        component["properties"] = [
            *component.get("properties", []),
            *({"name": EXTRA_PROPERTY, "value": extra} for extra in extras),
        ]


def write_sums(folder: Path) -> None:
    """Write the checksums of all files of a folder, for `sha256sum --check`."""
    files = sorted(folder.iterdir())
    text = "".join(f"{digest(file)}  {file.name}\n" for file in files)
    (folder / SUMS).write_text(text, encoding="utf-8")


def status(version: str) -> str:
    """Whether this is the commit of a release, in a sentence."""
    if not (ROOT / ".git").exists():
        return "Built from a source archive."
    if run("git", "status", "--porcelain"):
        return "Not a release: there are changes that are not committed."
    if f"v{version}" in run("git", "tag", "--points-at", "HEAD").split():
        return f"Release v{version}."
    return f"Not a release: this commit has no tag v{version}."


def make(output: Path) -> None:
    """Do everything; `output` is replaced at the end."""
    with tempfile.TemporaryDirectory(prefix="rappor-dist-") as name:
        work = Path(name)
        say("== build, twice")
        sdist, wheel = build(ROOT, work / "dist")
        for first, second in zip((sdist, wheel), build_again(sdist, work), strict=True):
            check_equal(first, second)
        say("== contents")
        committed = tracked()
        if committed is not None:
            check_contents(sdist, wheel, committed)
        say("== a client: the wheel in an empty environment")
        client = environment(work / "client")
        install(client, "--no-index", wheel)
        difference(
            "the client's environment", installed_packages(client), {"rappor"}, "is not of it"
        )
        check_extra(client, work)
        say("== a full install: with the pinned packages of the extras")
        full = environment(work / "full")
        install(full, "--require-hashes", "-r", ROOT / PINNED)
        version = sdist.name.removesuffix(".tar.gz").partition("-")[2]
        install(full, "--no-deps", "--no-index", "--find-links", sdist.parent, f"rappor=={version}")
        say("== README: clients from the wheel alone, then everything")
        run_readme(full, work / "a", "--python", client, sections=CLIENT_SECTIONS)
        run_readme(full, work / "b")
        say("== README: the install lines, in an unpacked source archive")
        follow_install_lines(unpack(sdist, work / "source"), wheel)
        say("== bill of materials and checksums")
        install(full, "--require-hashes", "-r", ROOT / PINNED_EXTRAS)
        for pinned in (PINNED, PINNED_EXTRAS):
            shutil.copy(ROOT / pinned, sdist.parent)
        write_sbom(full, version, sdist.parent / f"rappor-{version}.cdx.json")
        with contextlib.suppress(FileNotFoundError):
            (sdist.parent / ".gitignore").unlink()
        write_sums(sdist.parent)
        shutil.rmtree(output, ignore_errors=True)
        shutil.move(sdist.parent, output)
    for line in (output / SUMS).read_text(encoding="utf-8").splitlines():
        say(line)
    say(status(version))


def main() -> None:
    """Make the folder that is named on the command line."""
    parser = argparse.ArgumentParser(description="Build, check and list a release.")
    parser.add_argument("--output", type=Path, default=ROOT / "dist")
    try:
        make(parser.parse_args().output)
    except DistError as error:
        sys.exit(f"\nmake dist: FAILED\n{error}")


if __name__ == "__main__":
    main()
