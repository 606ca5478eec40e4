"""`rappor aggregate`: files of reports to counts."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rappor.cli.arguments import UsageError, add_kind, add_params, count, params_from
from rappor.cli.output import note, say_json
from rappor.cli.result_files import replacing
from rappor.errors import DecodeError, MissingExtraError
from rappor.mechanism import DIALECTS

if TYPE_CHECKING:
    from rappor.aggregate import Aggregated

_ENDINGS = (".csv", ".parquet", ".npz")


def register(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "aggregate",
        help="count the bits of reports (counts.csv)",
        description="Counts, for each cohort, the reports and the bits set in them. Reads "
        "google/rappor's reports.csv (client,cohort,bloom,prr,irr or client,cohort,rappor), JSON "
        "lines (cohort and bits or packed) and Parquet, of any size. Lines that are no reports are "
        "counted and named on standard error.",
        epilog="Example: rappor aggregate reports.csv --params params.csv --output counts.csv",
        allow_abbrev=False,
    )
    parser.add_argument(
        "reports",
        nargs="+",
        metavar="REPORTS",
        help="files that end in .csv, .jsonl, .ndjson (also with .gz) or .parquet",
    )
    add_params(parser)
    add_kind(parser)
    parser.add_argument(
        "--dialect", choices=list(DIALECTS), metavar="NAME", help=f"{', '.join(DIALECTS)} (strings)"
    )
    parser.add_argument(
        "--reports-per-client",
        type=count,
        metavar="N",
        help="the most reports that one client made on one value (default: not known)",
    )
    parser.add_argument(
        "--output",
        metavar="FILE",
        help="counts as .csv, .parquet or .npz (default: CSV to standard output)",
    )
    parser.add_argument("--strict", action="store_true", help="stop at the first malformed line")
    parser.add_argument(
        "--json",
        action="store_true",
        help="print a summary as JSON, with the counts in it if there is no --output",
    )
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Read, count, write, summarise."""
    params, preset_kind = params_from(args)
    output = _output(args)
    if importlib.util.find_spec("numpy") is None:
        raise MissingExtraError("aggregate", "analysis")
    from rappor.aggregate import aggregate_files

    start = time.perf_counter()
    with _Progress(args.reports) as progress:
        found = aggregate_files(
            args.reports,
            params,
            strict=args.strict,
            progress=progress.update,
            kind=args.kind or preset_kind,
            dialect=args.dialect,
            reports_per_client=args.reports_per_client,
        )
    seconds = time.perf_counter() - start
    if found.malformed and not found.rows:
        raise DecodeError(_nothing(found))
    if output is not None:
        _write(found, output)
    elif not args.json:
        found.counts.to_csv(sys.stdout)
    if args.json:
        say_json(_summary(found, seconds, output))
    for line in _complaints(found):
        note(line)
    note(_outcome(found, seconds))
    return 0


def _output(args: argparse.Namespace) -> Path | None:
    """Where the counts go, checked before hours of reading; None is standard output."""
    if args.output in (None, "-"):
        return None
    path = Path(args.output).expanduser()
    if path.suffix.lower() not in _ENDINGS:
        raise UsageError(f"--output must end in {', '.join(_ENDINGS)}; got {args.output}")
    path.parent.stat()  # FileNotFoundError says which folder is missing
    if path.exists() and any(_same(path, name) for name in args.reports):
        raise UsageError(f"--output {args.output} is one of the files of reports")
    return path


def _same(path: Path, name: str) -> bool:
    other = Path(name).expanduser()
    return other.exists() and os.path.samefile(path, other)


def _write(found: Aggregated, path: Path) -> None:
    write: dict[str, Callable[[Path], None]] = {
        ".csv": found.counts.to_csv,
        ".parquet": found.counts.to_parquet,
        ".npz": found.counts.to_npz,
    }
    with replacing(str(path)) as draft:
        write[path.suffix.lower()](draft)


class _Progress:
    """A bar on standard error where that is a terminal."""

    def __init__(self, names: list[str]) -> None:
        self._names = names
        self._bar: Any = None

    def __enter__(self) -> _Progress:
        terminal = sys.stderr is not None and sys.stderr.isatty()
        if terminal and importlib.util.find_spec("tqdm") is not None:
            from tqdm import tqdm

            files = [Path(name).expanduser() for name in self._names]
            total = sum(file.stat().st_size for file in files if file.exists())
            self._bar = tqdm(
                total=total, desc="counting", unit="B", unit_scale=True, delay=1.0, leave=False
            )
        return self

    def update(self, size: int) -> None:
        """So many more bytes are done."""
        if self._bar is not None:
            self._bar.update(size)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()


def _nothing(found: Aggregated) -> str:
    reason, times = max(found.reasons.items(), key=lambda item: item[1])
    which = "all" if times == found.malformed else f"{times:,} times"
    first = found.examples[0]
    return (
        f"not one report among {found.malformed:,} lines ({which}: {reason}); the first is "
        f"line {first.line} of {first.file}"
    )


def _complaints(found: Aggregated) -> list[str]:
    """One line for each reason, with the numbers of the first lines that have it."""
    lines = []
    for reason, times in found.reasons.items():
        shown = [f"{each.file}:{each.line}" for each in found.examples if each.reason == reason]
        more = ", ..." if len(shown) < times else ""
        where = f" ({', '.join(shown)}{more})" if shown else ""
        lines.append(f"malformed, {times:,} x: {reason}{where}")
    return lines


def _outcome(found: Aggregated, seconds: float) -> str:
    numbers = ", ".join(str(each.line) for each in found.examples)
    more = ", ..." if len(found.examples) < found.malformed else ""
    lines = f" (line {numbers}{more})" if found.malformed else ""
    return (
        f"{found.rows:,} reports, {found.rows / max(seconds, 1e-9):,.0f} a second; "
        f"{found.malformed:,} malformed{lines}"
    )


def _summary(found: Aggregated, seconds: float, output: Path | None) -> dict[str, Any]:
    counts = found.counts
    document: dict[str, Any] = {
        "params": counts.params.to_dict(),
        "digest": counts.params.digest,
        "kind": counts.kind,
        "dialect": counts.dialect,
        "reports_per_client": counts.reports_per_client,
        "reports": found.rows,
        "malformed": found.malformed,
        "reasons": dict(found.reasons),
        "examples": [
            {"file": each.file, "line": each.line, "reason": each.reason} for each in found.examples
        ],
        "seconds": seconds,
        "output": None if output is None else str(output),
    }
    if output is None:
        document |= {"totals": counts.totals.tolist(), "ones": counts.ones.tolist()}
    return document
