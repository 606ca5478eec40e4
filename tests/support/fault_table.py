"""Every verb of the command with every file that it reads or writes, for tests of what goes wrong.

The parsers say which verbs and which arguments there are: `leaves` and `file_arguments` read them.
"""

from __future__ import annotations

import argparse
import io
import re
from collections.abc import Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from rappor.cli.main import build_parser, main

Role = Literal["input", "input folder", "changed", "new", "output", "output folder"]

_METAVARS = {
    "FILE",
    "DIR",
    "REPORTS",
    "OLD",
    "NEW",
    "FILE|FOLDER",
    "SHAPE|FILE",
    "COLLECTION | OLD NEW",
    "LAKE",
    "[NAME=]FILE",
}
_ABOUT_FILES = re.compile(r"\b(file|folder|directory)\b")
_NOT_FILES = {
    ("import", "dimension"),  # "a dimension of all reports in the file"
    ("compare", "reports_per_client"),  # "in each file"
    ("decode", "decoder"),  # "imported from this folder": tests/e2e/test_own_decoder_cli.py
    ("reproduce", "new"),  # "write the folder": tests/unit/experiments/test_own_experiments.py
    ("run", "processes"),  # "the file's", as the number of processes
}
_ADDRESSES = {"store"}  # "a database instead of the data folder"


def leaves(
    parser: argparse.ArgumentParser | None = None, words: tuple[str, ...] = ()
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every verb, or verb and action, with its parser."""
    parser = parser or build_parser()
    actions = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    if not actions:
        yield " ".join(words), parser
    for action in actions:
        for name, child in action.choices.items():
            yield from leaves(child, (*words, name))


def file_arguments(verb: str, parser: argparse.ArgumentParser) -> set[str]:
    """The arguments of a verb that name files, by their metavar or their help."""
    taking = [action for action in parser._actions if action.nargs != 0]
    names = {
        action.dest
        for action in taking
        if action.metavar in _METAVARS or _ABOUT_FILES.search(action.help or "")
    }
    return {name for name in names - _ADDRESSES if (verb, name) not in _NOT_FILES}


@dataclass(frozen=True)
class FileArgument:
    """A file or folder of a command.

    Attributes:
        role: what the command does with it; a "changed" file is read and replaced, a "new" one
            never replaces a file.
        good: its usual name, in the folder of inputs or of outputs.
        form: the words of the command, if they are not those of the row.
        unlike: faults that are none for this file, such as a binary secret.
    """

    role: Role
    good: str
    form: str = ""
    unlike: frozenset[str] = frozenset()


@dataclass(frozen=True)
class FaultRow:
    """A verb: a command that works, and its files.

    Attributes:
        words: the command; {name} stands for a file argument.
        files: by the parser's name of the argument.
        serves: whether it would go on until it is stopped.
        prints: whether it prints a result; False if it takes long, or prints nothing.
    """

    words: str
    files: Mapping[str, FileArgument] = field(default_factory=dict)
    serves: bool = False
    prints: bool = True


def _in(good: str, form: str = "", *unlike: str) -> FileArgument:
    return FileArgument("input", good, form, frozenset(unlike))


def _folder(good: str, form: str = "", *unlike: str) -> FileArgument:
    return FileArgument("input folder", good, form, frozenset(unlike))


def _out(good: str, form: str = "", *unlike: str) -> FileArgument:
    return FileArgument("output", good, form, frozenset(unlike))


def _changed(good: str, form: str = "", *unlike: str) -> FileArgument:
    return FileArgument("changed", good, form, frozenset(unlike))


_PARAMS = _in("params.csv")
_DATA = _folder("data")
_COLLECTIONS = _folder("collections", "", "empty")
_PAGES = _folder("data", "", "empty")  # the dashboard can start before the collector
_LAKE = _folder("lake")
_NEW_DATA = FileArgument("output folder", "new-data")
_CHECK = "--candidates {candidates}"
_DECODE = "decode --params {params} --counts {counts}"
_STORED = "decode homepage --data {data} --candidates {candidates} --period 2026-11-16"
_BITS = "--kind category --categories a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p"
_COMPARE = "compare {what} {what}"
_PAIRS = "associate {what} --schema {schema}"
_LISTED = f"{_PAIRS} {_CHECK}"
_UPGRADE = "upgrade --check --data {data}"
_SERVE = "--data {data} --collections {collections} --port 0"
_TLS = f"{_SERVE} --tls-cert {{tls_cert}} --tls-key {{tls_key}}"
_SERVICE = {
    "data": _NEW_DATA,
    "collections": _COLLECTIONS,
    "tls_cert": _in("cert.pem", f"VERB {_TLS}"),
    "tls_key": _in("key.pem", f"VERB {_TLS}"),
    "keys": _in("keys.json", f"VERB {_SERVE} --keys {{keys}}"),
}

ROWS: dict[str, FaultRow] = {
    "privacy": FaultRow(
        "privacy --params {params}",
        {
            "params": _PARAMS,
            "definition": _in("homepage.toml", "privacy --collection {definition}"),
        },
    ),
    "plan": FaultRow(
        "plan --epsilon-one 1 --reports 1e6 --candidates 4 --check 0 --plot {plot}",
        {
            "population": _in(
                "population.csv",
                "plan --epsilon-one 1 --reports 1e6 --candidates 4 --check 0 "
                "--population {population}",
            ),
            "plot": _out("plan.json"),
        },
    ),
    "explain": FaultRow(
        "explain value --params {params} --secret-file {secret_file}",
        {"params": _PARAMS, "secret_file": _in("secret", "", "binary")},
    ),
    "encode": FaultRow(
        "encode value --params {params} --secret-file {secret_file}",
        {"params": _PARAMS, "secret_file": _in("secret", "", "binary")},
    ),
    "aggregate": FaultRow(
        "aggregate {reports} --params {params} --output {output} --json",
        {"reports": _in("reports.csv"), "params": _PARAMS, "output": _out("counts.csv")},
    ),
    "candidates": FaultRow(
        "candidates {file} --params {params} --output {output} --json",
        {"file": _in("candidates.txt"), "params": _PARAMS, "output": _out("map.csv")},
    ),
    "decode": FaultRow(
        f"{_DECODE} {_CHECK} --output {{output}} --json",
        {
            "params": _PARAMS,
            "counts": _in("counts.csv"),
            "candidates": _in("candidates.txt"),
            "map": _in("map.csv", f"{_DECODE} --map {{map}}"),
            "truth": _in("truth.csv", f"{_DECODE} {_CHECK} --truth {{truth}}"),
            "output": _out("results.csv"),
            "plot": _out("results.json", f"{_DECODE} {_CHECK} --plot {{plot}}"),
            "overlap": _in("overlap.csv", f"{_DECODE} {_BITS} --overlap {{overlap}}"),
            "data": _folder("data", _STORED),
        },
    ),
    "compare": FaultRow(
        f"{_COMPARE} --params {{params}} {_CHECK} --output {{output}} --json",
        {
            "what": _in("counts.csv"),
            "params": _PARAMS,
            "candidates": _in("candidates.txt"),
            "map": _in("map.csv", f"{_COMPARE} --params {{params}} --map {{map}}"),
            "output": _out("differences.csv"),
            "data": _folder("data", f"compare homepage --data {{data}} {_CHECK}"),
        },
    ),
    "associate": FaultRow(
        f"{_LISTED} --output {{output}} --json",
        {
            "what": _in("pairs/reports.csv"),
            "schema": _in("pairs/rappor-vars.csv"),
            "params_dir": _folder("pairs", f"{_LISTED} --params-dir {{params_dir}}", "binary"),
            "candidates": _in("candidates.txt"),
            "map": _in("pairs/map.csv", f"{_PAIRS} --map {{map}}"),
            "definition": _in(
                "homepage.toml", f"associate {{what}} --definition {{definition}} {_CHECK}"
            ),
            "data": _folder("data", f"associate install --data {{data}} {_CHECK}"),
            "output": _out("joint.csv"),
            "plot": _out("joint.json", f"{_LISTED} --plot {{plot}}"),
            "save": _out("pairs.npz", f"{_LISTED} --save {{save}}"),
        },
    ),
    "run": FaultRow("run {jobs}", {"jobs": _in("jobs.toml")}, prints=False),
    "lake ls": FaultRow("lake ls {lake} --json", {"lake": _LAKE}),
    "lake verify": FaultRow("lake verify {lake} --json", {"lake": _LAKE}),
    "lake seal": FaultRow(
        "lake seal {lake} --data {data} --open --json",
        {"lake": FileArgument("output folder", "new-lake"), "data": _DATA},
    ),
    "lake compact": FaultRow("lake compact {lake} --json", {"lake": _LAKE}),
    "simulate": FaultRow(
        "simulate --reports 100 --params {params} --population {population} --output {output}",
        {
            "params": _PARAMS,
            "population": _in("population.csv"),
            "output": FileArgument("output folder", "simulated"),
        },
    ),
    "attack": FaultRow(
        "attack window --params {params} --trials 10 --reports 2",
        {
            "params": _PARAMS,
            "definition": _in("homepage.toml", "attack window --collection {definition}"),
        },
    ),
    "reproduce": FaultRow(
        "reproduce life-of-a-report --seeds 2 --output {output}",
        {
            "output": FileArgument("output folder", "paper"),
            "experiments": _folder(
                "mine",
                "reproduce all --output {output} --experiments {experiments}",
                "empty",
                "binary",
            ),
        },
        prints=False,
    ),
    "collection new": FaultRow(
        "collection new theme --params {params} --output {output} --json",
        {
            "output": _out("theme.toml"),
            "params": _PARAMS,
            "plan": _in("plan.json", "collection new theme --plan {plan}"),
        },
    ),
    # A definition that is no definition is a finding of lint: exit code 1, like all its findings.
    "collection lint": FaultRow(
        "collection lint {paths}", {"paths": _in("homepage.toml", "", "empty", "binary")}
    ),
    "collection diff": FaultRow(
        "collection diff {old} {new}",
        {"old": _in("homepage.toml"), "new": _in("homepage.toml")},
    ),
    "collection show": FaultRow("collection show {file}", {"file": _in("homepage.toml")}),
    "collection export": FaultRow(
        "collection export {file} --output {output}",
        {"file": _in("homepage.toml"), "output": _out("homepage.json")},
        prints=False,
    ),
    "collection retire": FaultRow(
        "collection retire homepage --data {data} --collections {collections}",
        {"data": _DATA, "collections": _COLLECTIONS},
    ),
    # Damaged files are what this verb shows, and the dashboard shows them on its pages.
    "client inspect": FaultRow(
        "client inspect {directory}", {"directory": _folder("client", "", "binary")}
    ),
    "collect": FaultRow(f"collect {_SERVE}", _SERVICE, serves=True),
    "serve": FaultRow(f"serve {_SERVE} --no-dashboard", _SERVICE, serves=True),
    "dashboard": FaultRow(
        "dashboard --data {data} --collections {collections} --port 0",
        {
            "data": _folder("data", "", "empty", "binary"),
            "collections": _folder("collections", "", "empty", "binary"),
        },
        serves=True,
    ),
    "access new": FaultRow("access new ada --role viewer --data {data}", {"data": _PAGES}),
    "access link": FaultRow("access link bob --role viewer --data {data}", {"data": _PAGES}),
    "access revoke": FaultRow("access revoke bob --data {data} --json", {"data": _PAGES}),
    "access list": FaultRow("access list --data {data} --json", {"data": _PAGES}),
    "access log": FaultRow("access log --data {data} --json", {"data": _PAGES}),
    "keys new": FaultRow(
        "keys new ada --keys {keys} --output {output} --json",
        {
            "keys": _changed("keys.json", "", "missing"),
            "output": FileArgument("new", "ada.key"),
        },
    ),
    "keys list": FaultRow("keys list --keys {keys}", {"keys": _in("keys.json")}),
    "keys revoke": FaultRow(
        "keys revoke app --keys {keys} --json", {"keys": _changed("keys.json")}
    ),
    # Damaged files are findings of the check: exit code 1, like all its findings.
    "upgrade": FaultRow(
        _UPGRADE,
        {
            "data": _folder("data", "", "binary"),
            "collections": _folder(
                "collections", f"{_UPGRADE} --collections {{collections}}", "empty", "binary"
            ),
            "keys": _in("keys.json", f"{_UPGRADE} --keys {{keys}}", "empty", "binary"),
        },
    ),
    "status": FaultRow("status --data {data}", {"data": _DATA}),
    "import": FaultRow(
        "import {reports} --data {data} --collection homepage --collections {collections}",
        {
            "reports": _in("reports.csv"),
            "data": _folder(
                "data", "import {reports} --data {data} --collection homepage", "empty collection"
            ),
            "collections": _COLLECTIONS,
        },
    ),
    "export": FaultRow(
        "export homepage --data {data} --output {output} --json",
        {"data": _DATA, "output": _out("counts.csv")},
    ),
    "retain": FaultRow(
        "retain --data {data} --collections {collections}",
        {"data": _DATA, "collections": _COLLECTIONS},
    ),
    "backup": FaultRow(
        "backup --data {data} --output {output} --json",
        {"data": _DATA, "output": _out("store.backup", "", "no folder")},
    ),
    "restore": FaultRow(
        "restore {backup} --data {data} --json", {"backup": _in("store.backup"), "data": _NEW_DATA}
    ),
    "demo": FaultRow(
        "demo --reports 1000 --no-serve --keep {keep}",
        {"keep": FileArgument("output folder", "demo")},
        prints=False,
    ),
    "completion": FaultRow("completion bash"),
}


def command(verb: str, argument: str | None, place: Path, new: Path, bad: Path | str) -> list[str]:
    """The words of a verb's command with good files, except that one argument is `bad`.

    Args:
        verb: a key of `ROWS`.
        argument: the argument that is wrong; None for a command that works.
        place: the folder of inputs.
        new: the folder of outputs.
        bad: what the argument is.
    """
    row = ROWS[verb]
    form = (row.files[argument].form if argument else "") or row.words
    files = {
        name: str((new if file.role in WRITTEN else place) / file.good)
        for name, file in row.files.items()
    }
    if argument is not None:
        files[argument] = str(bad)
    return [word.format(**files) for word in form.replace("VERB", verb).split()]


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


def run(words: list[str], stdout: io.TextIOBase | None = None) -> Ended:
    """Run the command in this process."""
    out = stdout or io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    err = io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = main(words)
        except SystemExit as end:
            code = int(end.code or 0)
    printed = ""
    if stdout is None:
        out.seek(0)
        printed = out.read()
    return Ended(code, printed, err.getvalue())


WRITTEN = {"new", "output", "output folder"}  # the roles of files that the command makes
READERS = {
    "decode",
    "compare",
    "status",
    "upgrade",
    "client inspect",
}  # of folders, which need not write to them
BINARY = bytes(range(256)) * 8


def make_fault(fault: str, verb: str, file: FileArgument, folder: Path) -> Path:
    """Put a faulty file or folder into a folder, and return its name."""
    target = folder / f"wrong-{Path(file.good).name}"
    match file.role, fault:
        case ("input" | "changed", "empty"):
            target.touch()
        case ("input" | "changed", "binary"):
            target.write_bytes(BINARY)
        case (_, "directory") | ("input folder", "empty"):
            target.mkdir()
        case ("input folder" | "output folder", "a file"):
            target.write_text("a file\n")
        case ("input folder", "binary"):
            target.mkdir()
            name = {"collections": "a.toml"}.get(file.good, "store.sqlite")
            name = "dashboard.sqlite" if verb.startswith("access") or verb == "dashboard" else name
            name = "secret" if verb == "client inspect" else name
            (target / name).write_bytes(BINARY)
        case ("output" | "new" | "changed", "no folder"):
            return folder / "nowhere" / file.good
        case ("output" | "new" | "changed" | "output folder", "below a file"):
            (folder / "wrong").write_text("a file\n")
            return folder / "wrong" / file.good
        case ("output" | "new", "exists"):
            target.write_text("a file of before\n")
    return target


FAULTS: dict[Role, tuple[str, ...]] = {
    "input": ("missing", "empty", "binary", "directory"),
    "input folder": ("missing", "a file", "empty", "binary"),
    "changed": ("missing", "no folder", "empty", "binary", "directory", "below a file"),
    "new": ("no folder", "directory", "below a file", "exists"),
    "output": ("no folder", "directory", "below a file"),
    "output folder": ("a file", "below a file"),
}


def cases() -> Iterator[tuple[str, str, str]]:
    """Every verb, each of its file arguments, each fault of it that needs no special disk."""
    for verb, parser in leaves():
        for argument, file in ROWS[verb].files.items():
            for fault in FAULTS[file.role]:
                if fault not in file.unlike:
                    yield verb, argument, fault
            if file.role == "output" and "--force" in parser._option_string_actions:
                yield verb, argument, "exists"
