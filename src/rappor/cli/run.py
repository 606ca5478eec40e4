"""`rappor run jobs.toml`: decode many collections and periods, as every night."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from rappor.checks import plural, show
from rappor.cli.arguments import UsageError, count, need_analysis
from rappor.cli.output import Ticker, note, say, say_json
from rappor.cli.paths import existing_file
from rappor.cli.store_options import data_folder, verb
from rappor.errors import MissingExtraError

if TYPE_CHECKING:
    from rappor.runs import RunProgress, RunReport

_STEPS = 10  # lines about the progress, where no terminal shows a line that changes


def register(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verb(
        verbs,
        "run",
        "decode many collections and periods, as every night",
        "Decode the collections and periods that a file of jobs names, in parallel processes, and "
        "write results and a report. Results that have not changed are not decoded again, so a run "
        "that was killed goes on where it stopped. A job that fails does not stop the others; the "
        "exit code is 1 then. See docs/run.md for the file.",
        "rappor run jobs.toml",
    )
    parser.add_argument("jobs", metavar="FILE", help="the file of jobs, in TOML")
    parser.add_argument(
        "--only", action="append", default=[], metavar="JOB", help="run this job only (repeatable)"
    )
    parser.add_argument(
        "--processes",
        type=count,
        metavar="N",
        help="decode N at once (default: the file's, or one for each core)",
    )
    parser.add_argument(
        "--again", action="store_true", help="decode also what has not changed since the last run"
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Read the file, run the jobs, report."""
    need_analysis("run", "numpy", "scipy", "pyarrow")
    from dataclasses import replace

    from rappor.runs import read_jobs, run_jobs

    file = read_jobs(existing_file(args.jobs, "file of jobs"))
    for name in args.only:
        if name not in {job.name for job in file.jobs}:
            known = ", ".join(job.name for job in file.jobs)
            raise UsageError(f"--only: there is no job {show(name)}; there is: {known}")
    data_folder(str(file.data))
    if args.processes is not None:
        file = replace(file, processes=args.processes)
    if file.dashboard:
        _need_dashboard()
    with Ticker() as ticker:
        report = run_jobs(file, tell=_Teller(ticker), again=args.again, only=args.only)
    if args.json:
        say_json({**report.document(), "output": str(file.output)})
    else:
        _conclude(report, str(file.output))
    return 0 if report.ok else 1


class _Teller:
    """Shows the progress: a line that changes on a terminal, else a line for each tenth."""

    def __init__(self, ticker: Ticker) -> None:
        self._ticker, self._shown = ticker, 0

    def __call__(self, progress: RunProgress) -> None:
        self._ticker(f"{progress.words}: {progress.text}")
        if self._ticker.on:
            return
        tenth = progress.done * _STEPS // max(progress.total, 1)
        if tenth > self._shown or progress.done == 1:
            self._shown = tenth
            note(f"rappor run: {progress.words}")


def _need_dashboard() -> None:
    from importlib.util import find_spec

    if find_spec("starlette") is None:
        raise MissingExtraError("run with dashboard = true", "server")


def _conclude(report: RunReport, output: str) -> None:
    for unit in report.units:
        if unit["status"] == "failed":
            note(f"failed: {unit['name']}: {unit['error']}")
    parts = [
        plural(report.number("done"), "result", "results") + " decoded",
        f"{report.number('unchanged'):,} unchanged",
        f"{report.number('failed'):,} failed",
    ]
    say(f"{', '.join(parts)}; see {output}/run.json")
