"""`rappor aggregate`: count the bits of reports in files."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rappor.cli.aggregate_engines import (
    add_engine,
    add_lake_options,
    aggregate_lake,
    aggregate_named_files,
    check_engine,
    lake_of,
)
from rappor.cli.arguments import UsageError, add_kind, add_params, count, params_from
from rappor.cli.output import note, say_json
from rappor.cli.paths import path_of, target_of
from rappor.cli.result_files import replacing
from rappor.errors import DecodeError, MissingExtraError
from rappor.files import STANDARD_INPUT
from rappor.mechanism import DIALECTS

if TYPE_CHECKING:
    from rappor.aggregate import Aggregated

_ENDINGS = (".csv", ".parquet", ".npz")


def register(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "aggregate",
        help="count the bits of reports (writes counts.csv)",
        description="Count, for each cohort, the reports and the bits set in them. Reads "
        "google/rappor's reports.csv (client,cohort,bloom,prr,irr or client,cohort,rappor), JSON "
        "lines (cohort and bits or packed) and Parquet, of any size. Malformed lines are skipped, "
        "counted and listed on standard error.",
        epilog="Example: rappor aggregate reports.csv --params params.csv --output counts.csv",
        allow_abbrev=False,
    )
    parser.add_argument(
        "reports",
        nargs="+",
        metavar="REPORTS",
        help="files ending in .csv, .jsonl, .ndjson (also with .gz) or .parquet; - is standard "
        "input, as CSV or JSON lines; or one lake: a folder, or a URL such as s3://bucket/lake",
    )
    add_params(parser)
    add_kind(parser)
    parser.add_argument(
        "--dialect",
        choices=list(DIALECTS),
        metavar="NAME",
        help=f"how clients map strings to bits: {', '.join(DIALECTS)}",
    )
    parser.add_argument(
        "--reports-per-client",
        type=count,
        metavar="N",
        help="maximum number of reports of one client on one value (default: unknown)",
    )
    parser.add_argument(
        "--output",
        metavar="FILE",
        help="file for the counts: .csv, .parquet or .npz (default, or -: CSV to standard output)",
    )
    parser.add_argument("--strict", action="store_true", help="stop at the first malformed line")
    add_engine(parser)
    add_lake_options(parser)
    parser.add_argument(
        "--json",
        action="store_true",
        help="print a summary as JSON; it includes the counts if there is no --output",
    )
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Count the reports, write the counts, print a summary."""
    if importlib.util.find_spec("numpy") is None:
        raise MissingExtraError("aggregate", "analysis")
    check_engine(args)
    if lake_of(args) is not None:
        output, counted = _output(args), aggregate_lake
    else:
        params, preset_kind = params_from(args)
        output = _output(args)
        _check_each_once(args.reports)
        kind = args.kind or preset_kind
        about = {"dialect": args.dialect, "reports_per_client": args.reports_per_client}
        counted = partial(aggregate_named_files, params=params, kind=kind, **about)
    start = time.perf_counter()
    with _Progress(args.reports) as progress:
        done = counted(args, progress.update)
    seconds = time.perf_counter() - start
    if done.malformed and not done.rows:
        raise DecodeError(_nothing(done))
    if output is not None:
        _write(done, output)
    elif not args.json:
        done.counts.to_csv(sys.stdout)
    if args.json:
        say_json(_summary(done, seconds, output))
    for line in _complaints(done):
        note(line)
    note(_outcome(done, seconds))
    return 0


def _output(args: argparse.Namespace) -> Path | None:
    """The file for the counts, checked before the long work; None is standard output."""
    if args.output in (None, "-"):
        return None
    path = path_of(args.output)
    if path.suffix.lower() not in _ENDINGS:
        raise UsageError(f"--output must end in {', '.join(_ENDINGS)}; got {args.output}")
    target_of(args.output)
    if path.exists() and any(_same(path, name) for name in args.reports):
        raise UsageError(f"--output {args.output} is also an input file; choose another name")
    return path


def _check_each_once(names: list[str]) -> None:
    """UsageError if a file is given twice, also by another name: its reports would count twice."""
    seen: dict[object, str] = {}
    for name in names:
        path = path_of(name)
        about = path.stat() if name != STANDARD_INPUT and path.exists() else None
        key: object = name if about is None else (about.st_dev, about.st_ino)
        if key in seen:
            also = "" if seen[key] == name else f" (as {seen[key]} before)"
            raise UsageError(
                f"{name} is given twice{also}: give each file once, or it counts twice"
            )
        seen[key] = name


def _same(path: Path, name: str) -> bool:
    other = path_of(name)
    return other.exists() and os.path.samefile(path, other)


def _write(done: Aggregated, path: Path) -> None:
    write: dict[str, Callable[[Path], None]] = {
        ".csv": done.counts.to_csv,
        ".parquet": done.counts.to_parquet,
        ".npz": done.counts.to_npz,
    }
    with replacing(str(path)) as draft:
        write[path.suffix.lower()](draft)


class _Progress:
    """A progress bar on standard error, if that is a terminal."""

    def __init__(self, names: list[str]) -> None:
        self._names = names
        self._bar: Any = None

    def __enter__(self) -> _Progress:
        terminal = sys.stderr is not None and sys.stderr.isatty()
        if terminal and importlib.util.find_spec("tqdm") is not None:
            from tqdm import tqdm

            files = [path_of(name) for name in self._names]
            total = sum(file.stat().st_size for file in files if file.exists())
            self._bar = tqdm(
                total=total, desc="counting", unit="B", unit_scale=True, delay=1.0, leave=False
            )
        return self

    def update(self, size: int) -> None:
        """Add a number of bytes that have been read."""
        if self._bar is not None:
            self._bar.update(size)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()


def _nothing(done: Aggregated) -> str:
    reason, times = max(done.reasons.items(), key=lambda item: item[1])
    which = "all" if times == done.malformed else f"{times:,} times"
    first = done.examples[0]
    return (
        f"no report among {done.malformed:,} lines ({which}: {reason}); the first is "
        f"line {first.line} of {first.file}"
    )


def _complaints(done: Aggregated) -> list[str]:
    """One line for each reason, with the numbers of the first such lines."""
    lines = []
    for reason, times in done.reasons.items():
        shown = [
            f"{example.file}:{example.line}"
            for example in done.examples
            if example.reason == reason
        ]
        more = ", ..." if len(shown) < times else ""
        where = f" ({', '.join(shown)}{more})" if shown else ""
        lines.append(f"malformed, {times:,} x: {reason}{where}")
    return lines


def _outcome(done: Aggregated, seconds: float) -> str:
    numbers = ", ".join(str(example.line) for example in done.examples)
    more = ", ..." if len(done.examples) < done.malformed else ""
    lines = f" (line {numbers}{more})" if done.malformed else ""
    return (
        f"{done.rows:,} reports, {done.rows / max(seconds, 1e-9):,.0f} a second; "
        f"{done.malformed:,} malformed{lines}"
    )


def _summary(done: Aggregated, seconds: float, output: Path | None) -> dict[str, Any]:
    counts = done.counts
    document: dict[str, Any] = {
        "params": counts.params.to_dict(),
        "digest": counts.params.digest,
        "kind": counts.kind,
        "dialect": counts.dialect,
        "reports_per_client": counts.reports_per_client,
        "reports": done.rows,
        "malformed": done.malformed,
        "reasons": dict(done.reasons),
        "examples": [
            {"file": example.file, "line": example.line, "reason": example.reason}
            for example in done.examples
        ],
        "seconds": seconds,
        "output": None if output is None else str(output),
    }
    if output is None:
        document |= {"totals": counts.totals.tolist(), "ones": counts.ones.tolist()}
    return document
