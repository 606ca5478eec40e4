"""A data folder for nightly runs, files of jobs, and a run that can be killed."""

import json
import os
import signal
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

from rappor import Params
from rappor.collection import Collection, period_of
from support.command import COMMAND, environment
from support.dashboard import NEXT_YEAR, OWNER, TODAY, Sample
from support.waiting import wait_for

STRINGS = Params(k=64, h=2, m=8, f=0.25, p=0.35, q=0.65)
THEMES = Params(k=3, h=1, m=1, f=0.25, p=0.35, q=0.65)
LISTED = [f"page{number:02}.example" for number in range(24)]
CLOSED = 20  # days ago, the newest day: its period accepts no reports any more


def day(back: int) -> str:
    return period_of("day", TODAY - timedelta(days=CLOSED + back))


def night_folder(folder: Path, names: int, periods: int, *, countries: bool = False) -> Sample:
    """Collections of strings, and every third one of categories, with closed periods."""
    sample = Sample(folder)
    for number in range(names):
        common: dict[str, Any] = {"owner": OWNER, "expires": NEXT_YEAR, "period": "day"}
        if countries:
            common["dimensions"] = {"country": ("NZ", "CH")}
        if number % 3 == 2:
            themes = ("dark", "light", "other")
            each = Collection(
                f"theme-{number:02}", 1, THEMES, kind="category", categories=themes, **common
            )
        else:
            each = Collection(f"page-{number:02}", 1, STRINGS, **common)
        sample.define(each)
        shares = {LISTED[number % 7]: 5.0, LISTED[number % 5 + 8]: 3.0, "unlisted.example": 1.0}
        if each.kind == "category":
            shares = {"dark": 3.0, "light": 2.0, "other": 1.0}
        for back in range(periods):
            for place, country in enumerate(("NZ", "CH") if countries else ("",)):
                pairs = [("country", country)] if country else []
                seed = 1000 * number + 10 * back + place
                sample.add(each, day(back), shares, 50_000 + 100 * back, pairs, seed=seed)
    sample.store()
    return sample


def write_jobs(sample: Sample, *jobs: str, output: str = "results", **top: object) -> Path:
    """A file of jobs next to the data folder, and a list of candidates."""
    listed = sample.folder / "pages.txt"
    listed.write_text("".join(f"{each}\n" for each in LISTED), encoding="utf-8")
    formats = ["csv", "json", "parquet"]
    facts = {"data": "data", "output": output, "formats": formats, "processes": 1, **top}
    lines = [f"{name} = {json.dumps(value)}" for name, value in facts.items()]
    lines += [f"[[jobs]]\n{job}" for job in jobs]
    path = sample.folder / f"jobs-{output}.toml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def result_bytes(output: Path) -> dict[str, bytes]:
    """The files of results by path; neither the report nor the journal, which tell times."""
    return {
        str(path.relative_to(output)): path.read_bytes()
        for path in sorted(output.rglob("*"))
        if path.is_file() and ".run" not in path.parts and path.name != "run.json"
    }


def entries(output: Path) -> int:
    """How many units are in the journal."""
    return len(list((output / ".run" / "done").glob("*.json")))


class NightlyRun:
    """`rappor run` in a process of its own."""

    def __init__(self, jobs: Path, *options: str) -> None:
        self._log = jobs.with_suffix(".log").open("ab")
        self.process = subprocess.Popen(
            [*COMMAND, "run", str(jobs), *options],
            stdout=subprocess.DEVNULL,
            stderr=self._log,
            env=environment(),
            start_new_session=True,
        )

    def kill_after(self, output: Path, number: int) -> bool:
        """Kill the run, not its workers, when so many units are done; False if it was faster."""
        wait_for(lambda: entries(output) >= number or self.process.poll() is not None)
        killed = self.process.poll() is None
        if killed:
            os.kill(self.process.pid, signal.SIGKILL)
        self.end()
        return killed

    def end(self) -> int:
        """Wait for the end; returns the exit code."""
        code = self.process.wait(300)
        self._log.close()
        return code
