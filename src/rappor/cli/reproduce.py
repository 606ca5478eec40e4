"""`rappor reproduce`: recompute the paper's figures and tables, and compare them with the paper."""

from __future__ import annotations

import argparse
import functools
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rappor.cli.arguments import UsageError, count
from rappor.cli.output import Ticker, note, say, say_json, table
from rappor.cli.paths import existing_folder, output_folder, path_of
from rappor.errors import MissingExtraError

if TYPE_CHECKING:
    from rappor.experiments.seeds import Progress
    from rappor.experiments.summary import Document

SEEDS, MIN_SEEDS = 20, 2
ALL = "all"
_NEEDED = ("numpy", "scipy", "vl_convert")


def register(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "reproduce",
        help="recompute the paper's figures and tables, and compare the numbers",
        description="Run experiments of the paper and write, for each, figures (PNG, SVG), tables "
        "(CSV) and a page with the published number, ours with its spread over seeds, and the "
        "verdict; index.html and summary.json cover all experiments. Without NAME, list the "
        "experiments.",
        epilog="Examples: rappor reproduce; rappor reproduce normal --output out; "
        "rappor reproduce all --output out; rappor reproduce --new two-peaks --experiments mine. "
        "Exit code 1 means that an experiment failed; the files of the others are written.",
        allow_abbrev=False,
    )
    parser.add_argument("name", nargs="*", metavar="NAME", help="names of experiments, or all")
    parser.add_argument("--output", metavar="DIR", help="folder for the files; created if missing")
    parser.add_argument(
        "--seeds",
        type=_seeds,
        default=SEEDS,
        metavar="N",
        help="repetitions of each simulation, at least 2 (default: %(default)s)",
    )
    parser.add_argument(
        "--experiments",
        metavar="DIR",
        help="also experiments of your own: a folder in DIR for each, with an experiment.py",
    )
    parser.add_argument(
        "--new",
        metavar="NAME",
        help="write the folder of a new experiment into --experiments DIR, to change",
    )
    parser.add_argument("--list", action="store_true", help="list the experiments and exit")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)
    return parser


def _seeds(text: str) -> int:
    """A whole number of at least 2: one value has no spread."""
    number = 0 if text == "0" else count(text)
    if number < MIN_SEEDS:
        message = f"{text!r} is too few: a spread needs at least {MIN_SEEDS}"
        raise argparse.ArgumentTypeError(message)
    return number


def run(args: argparse.Namespace) -> int:
    """List, or run and write."""
    from importlib.util import find_spec

    if any(find_spec(package) is None for package in _NEEDED):
        raise MissingExtraError("reproduce", "analysis")
    if args.new is not None:
        return _new(args)
    folder = _own_folder(args)
    if args.list or not args.name:
        if args.output is not None and not args.list:
            raise UsageError("give the NAME of an experiment, or all")
        return _list(args.json, folder)
    names = _chosen(args.name, folder)
    directory = _directory(args.output)
    return _reproduce(names, directory, folder, args)


def _new(args: argparse.Namespace) -> int:
    """Write the template under a new name."""
    from rappor.experiments import new_folder

    if args.experiments is None:
        raise UsageError("--new needs --experiments DIR, the folder to write it into")
    file = new_folder(args.new, path_of(args.experiments))
    say(str(file))
    note(
        f"wrote {file}; change it, then run: rappor reproduce {args.new} --experiments "
        f"{args.experiments} --output pages --seeds 2"
    )
    return 0


def _own_folder(args: argparse.Namespace) -> Path | None:
    if args.experiments is None:
        return None
    return existing_folder(args.experiments, "folder of experiments, which --new NAME makes")


def _chosen(given: list[str], folder: Path | None) -> list[str]:
    """The names, each once, in the paper's order; `all` means every experiment."""
    from rappor.experiments import check_name, names

    for name in given:
        if name != ALL:
            check_name(name, folder)
    return [name for name in names(folder) if name in given or ALL in given]


def _directory(given: str | None) -> Path:
    if given is None:
        raise UsageError("--output DIR is required: give a folder for the files")
    return output_folder(given)


def _list(as_json: bool, folder: Path | None) -> int:
    from rappor.experiments import load, names

    experiments = [load(name, folder) for name in names(folder)]
    if as_json:
        say_json(
            {
                "experiments": [
                    {
                        "name": experiment.name,
                        "title": experiment.title,
                        "source": experiment.source,
                        "stand_in": experiment.stand_in,
                    }
                    for experiment in experiments
                ]
            }
        )
        return 0
    for line in table(
        [(experiment.name, experiment.title, experiment.source) for experiment in experiments],
        left=3,
    ):
        say(line)
    note("Run one: rappor reproduce NAME --output DIR. Run all: rappor reproduce all --output DIR")
    return 0


def _reproduce(
    names: list[str], directory: Path, folder: Path | None, args: argparse.Namespace
) -> int:
    from rappor.experiments.reproduce import reproduce
    from rappor.experiments.summary import document, entry

    entries: Document = {}
    for number, name in enumerate(names, 1):
        at = f"[{number}/{len(names)}] {name}"
        with Ticker() as ticker:
            tell: Progress = functools.partial(_tell, ticker, at)
            done = reproduce(name, directory, args.seeds, tell, folder)
        state = "done" if done.failure is None else f"FAILED: {done.failure}"
        note(f"{at}: {state}, {done.seconds:.1f} s")
        if done.error is not None and args.debug:
            traceback.print_exception(done.error)
        entries[name] = entry(done)
    if args.json:
        say_json({**document(entries), "output": str(directory), "seeds": args.seeds})
    else:
        _conclude(entries, directory)
    return 1 if any(item["failed"] is not None for item in entries.values()) else 0


def _tell(ticker: Ticker, at: str, text: str) -> None:
    ticker(f"{at}: {text}")


def _conclude(entries: Document, directory: Path) -> None:
    from rappor.experiments.summary import verdict_words

    rows = [("experiment", "verdicts", "page")]
    rows += [
        (name, verdict_words(item), str(directory / item["page"])) for name, item in entries.items()
    ]
    for line in table(rows, left=3):
        say(line)
    say()
    say(f"Overview: {directory / 'index.html'}")
