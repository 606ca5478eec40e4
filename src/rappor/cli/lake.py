"""`rappor lake`: list, verify, seal and compact a lake of kept reports."""

from __future__ import annotations

import argparse
from contextlib import closing
from typing import TYPE_CHECKING, Any

from rappor.checks import plural
from rappor.cli.arguments import UsageError, need_analysis
from rappor.cli.output import Ticker, note, say, say_json, table
from rappor.cli.store_options import add_data, open_data, today, verb, where
from rappor.host import actor

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rappor.aggregate.lake.manifest import LakeFault, LakeFile

_WHERE = "a folder, or a URL such as s3://bucket/lake or gs://bucket/lake"


def register(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb with its four parts."""
    parser: argparse.ArgumentParser = verb(
        verbs,
        "lake",
        "keep reports as Parquet files: seal, ls, verify, compact",
        "A lake holds the reports that collections keep, sealed into Parquet files in a folder or "
        "an object store, with a manifest of checksums. Spark and `rappor aggregate` count it. See "
        "docs/lake.md.",
        "rappor lake seal lake --data data",
    )
    parts = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    parser.set_defaults(run=_no_action)

    def part(name: str, about: str, more: str, run: Any) -> argparse.ArgumentParser:
        made = parts.add_parser(name, help=about, description=more, allow_abbrev=False)
        made.add_argument("lake", metavar="LAKE", help=_WHERE)
        made.add_argument("--json", action="store_true", help="print a summary as JSON")
        made.add_argument("--debug", action="store_true", help="show the traceback of an error")
        made.set_defaults(run=run, parser=made)
        return made

    part(
        "ls",
        "list what a lake holds, from its manifest",
        "List the collections, periods and reports of a lake. Files are not read.",
        run_ls,
    )
    part(
        "verify",
        "read every file, and name what is wrong",
        "Read and count every file. Name each that is truncated, damaged, foreign, missing, or not "
        "in the manifest; none of these is ever counted. The exit code is 1 if there is one.",
        run_verify,
    )
    sealing = part(
        "seal",
        "write the kept reports of closed periods to a lake",
        "Write the reports that a data folder keeps to a lake, whole cells at a time, when their "
        "period accepts no more reports. Remove files that are older than their collection allows.",
        run_seal,
    )
    add_data(sealing)
    sealing.add_argument(
        "--open",
        action="store_true",
        help="seal open periods too, each cell again after at least 50 more reports",
    )
    part(
        "compact",
        "merge small files, and remove old and useless ones",
        "Merge the small files of each closed period, remove files that are older than their "
        "collection allows or that another file makes useless, and shorten the manifest.",
        run_compact,
    )
    return parser


def _no_action(_: argparse.Namespace) -> int:
    raise UsageError("give an action: ls, verify, seal or compact (see: rappor lake --help)")


def run_ls(args: argparse.Namespace) -> int:
    """List the periods of a lake."""
    need_analysis("lake", "numpy", "pyarrow")
    from rappor.aggregate.lake.manifest import read_manifest
    from rappor.aggregate.lake.place import LakePlace

    manifest = read_manifest(LakePlace(args.lake))
    rows = _periods(manifest.files.values())
    if args.json:
        say_json({"periods": rows, "faults": _documents(manifest.faults)})
        return 0
    head = ("collection", "version", "period", "cells", "files", "reports", "MB", "kept until")
    shown = [
        (
            row["collection"],
            f"v{row['version']}",
            row["period"],
            *(f"{row[name]:,}" for name in ("cells", "files", "reports")),
            f"{row['bytes'] / 1e6:,.1f}",
            row["keep_until"],
        )
        for row in rows
    ]
    for line in table([head, *shown], left=3):
        say(line)
    total = sum(row["reports"] for row in rows)
    files = plural(len(manifest.files), "file", "files")
    say(f"{plural(total, 'report', 'reports')} in {files}")
    _complain(manifest.faults)
    return 0


def _periods(files: Iterable[LakeFile]) -> list[dict[str, Any]]:
    found: dict[tuple[str, int, str], dict[str, Any]] = {}
    for file in files:
        name, version, period = file.of
        row = found.setdefault(
            file.of,
            {
                "collection": name,
                "version": version,
                "period": period,
                **dict.fromkeys(("cells", "files", "reports", "bytes"), 0),
                "keep_until": file.keep_until.isoformat(),
            },
        )
        row["cells"] += len(file.cells)
        row["files"] += 1
        row["reports"] += file.reports
        row["bytes"] += file.size
    return [found[key] for key in sorted(found)]


def run_verify(args: argparse.Namespace) -> int:
    """Read everything; exit with 1 if something is wrong."""
    need_analysis("lake", "numpy", "pyarrow")
    from rappor.aggregate.lake import LakePlace, verify

    with Ticker() as tick:
        found = verify(LakePlace(args.lake), tick)
    if args.json:
        facts = {"files": found.files, "reports": found.reports}
        say_json({**facts, "faults": _documents(found.faults)})
    else:
        files = plural(found.files, "file is", "files are")
        say(f"{files} sound, with {plural(found.reports, 'report', 'reports')}")
    _complain(found.faults)
    return 1 if found.faults else 0


def run_seal(args: argparse.Namespace) -> int:
    """Seal what is not in the lake yet."""
    need_analysis("lake", "numpy", "pyarrow")
    from rappor.aggregate.lake import LakePlace, seal

    place = LakePlace(args.lake)
    with closing(open_data(where(args), read_only=False)) as store, Ticker() as tick:
        done = seal(store, place, today(), open_periods=args.open, actor=actor(), progress=tick)
    if args.json:
        say_json(
            {
                "files": [file.path for file in done.files],
                "reports": done.reports,
                "removed": list(done.removed),
                "waiting": [{"cell": str(cell), "reason": why} for cell, why in done.waiting],
            }
        )
    else:
        files = plural(len(done.files), "file", "files")
        say(f"{plural(done.reports, 'report', 'reports')} sealed in {files}")
        if done.removed:
            say(f"{plural(len(done.removed), 'file', 'files')} removed, as too old")
    reasons: dict[str, int] = {}
    for _, why in done.waiting:
        reasons[why] = reasons.get(why, 0) + 1
    for why, cells in reasons.items():
        note(f"not sealed: {plural(cells, 'cell', 'cells')}: {why}")
    return 0


def run_compact(args: argparse.Namespace) -> int:
    """Merge, remove, shorten."""
    need_analysis("lake", "numpy", "pyarrow")
    from rappor.aggregate.lake import LakePlace, compact

    with Ticker() as tick:
        done = compact(LakePlace(args.lake), today(), tick)
    if args.json:
        facts = {name: getattr(done, name) for name in ("merged", "written", "removed")}
        say_json({**facts, "faults": _documents(done.faults)})
    else:
        merged = plural(done.merged, "small file", "small files")
        say(f"{merged} merged into {done.written:,}, {done.removed:,} removed")
    _complain(done.faults)
    return 1 if done.faults else 0


def _documents(faults: Iterable[LakeFault]) -> list[dict[str, str]]:
    return [fault._asdict() for fault in faults]


def _complain(faults: Iterable[LakeFault]) -> None:
    for fault in faults:
        note(f"{fault.code}: {fault}")
