"""The dashboard's budgets: pages, charts in a real browser, and a decode next to the command's.

Pages are asked for one after the other from a dashboard of 100 collections with 365 periods each,
at rest and while another process commits 50 times a second. Charts are drawn in Chromium by a
context that has cached nothing. Where no Chromium is installed that part is left out, which is
said. A budget that is not kept is said, and makes the exit code 1: run it on a machine at rest.

    make bench                                 all of it
    python benchmarks/dashboard.py --quick     smaller sizes and fewer rounds, for a look
"""

import argparse
import contextlib
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
sys.path.insert(0, str(TESTS))

from rappor import Params  # noqa: E402
from rappor.collection import Collection  # noqa: E402
from rappor.dashboard.auth.roles import Role  # noqa: E402
from support.chromium import chromium  # noqa: E402
from support.command import COMMAND, environment  # noqa: E402
from support.dashboard import (  # noqa: E402
    Dashboard,
    Sample,
    large_folder,
    sample_folder,
    serving,
    week,
)
from support.visit import Visit  # noqa: E402

PAGE_MS = 200.0
CHART_MS = {"trends": 1200.0}  # others:
OTHER_CHART_MS = 800.0
START_SECONDS = 10.0  # until a dashboard of 100 collections listens
DECODE_RATIO = 2.0  # of the command's time, and a second for the worker to start
KEPT_SECONDS, MEANWHILE_SECONDS = 0.4, 2.0
DRAWN = """() => {
  const all = [...document.querySelectorAll("figure[data-chart], figure[data-cells]")];
  return all.length > 0 && all.every((figure) => figure.dataset.drawn);
}"""


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number and its goal, which it must not exceed."""

    name: str
    found: float
    goal: float
    unit: str

    @property
    def kept(self) -> bool:
        return self.found <= self.goal


@contextlib.contextmanager
def writing(sample: Sample, name: str) -> Iterator[None]:
    """A process that adds reports to the newest period of a collection until it is ended."""
    command = [sys.executable, "-m", "support.writing", str(sample.data), name]
    process = subprocess.Popen(command, env=environment(), cwd=TESTS)
    try:
        yield
        if process.poll() is not None:
            sys.exit("the writer ended by itself")
    finally:
        process.terminate()
        process.wait()


def asked(visit: Visit, path: str, status: int = 200) -> float:
    """Milliseconds until a page is here."""
    began = time.perf_counter()
    answer = visit.get(path)
    took = time.perf_counter() - began
    if answer.status != status:
        sys.exit(f"{path}: {answer.status}")
    return 1000 * took


def pages(visit: Visit, name: str, times: int, when: str) -> Iterator[Figure]:
    """The median of each page, and the slowest beyond what an empty answer takes at its worst."""
    one = f"/collections/{name}"
    paths = ["/", "/?sort=-reports&q=9", "/collections.json", "/ingest", one]
    paths += [f"{one}/{page}" for page in ("trends", "diagnostics", "candidates")]
    for path in paths:
        taken, bare = [], []
        for _ in range(times):
            bare.append(asked(visit, "/static/none", 404))
            taken.append(asked(visit, path))
            time.sleep(0.02)
        said = path.replace(one, "/collections/NAME")
        yield Figure(f"{said}, {when}, median", statistics.median(taken), PAGE_MS, "ms")
        yield Figure(f"{said}, {when}, slowest", max(0.0, max(taken) - max(bare)), PAGE_MS, "ms")


def reports_of(visit: Visit, name: str) -> int:
    listed = json.loads(visit.get("/collections.json").body)["collections"]
    return next(each["reports"] for each in listed if each["collection"] == name)


def measure_pages(folder: Path, names: int, periods: int, times: int) -> Iterator[Figure]:
    """Start-up, pages at rest, pages while reports are written."""
    large = large_folder(folder, names, periods)
    name = next(iter(large.collections.values())).name
    began = time.perf_counter()
    with serving(large) as dashboard:
        yield Figure("start-up", time.perf_counter() - began, START_SECONDS, "s")
        visit = dashboard.browser(Role.OPERATOR)
        visit.get("/")  # looked at the store once
        yield from pages(visit, name, times, "at rest")
        before = reports_of(visit, name)
        with writing(large, name):
            while reports_of(visit, name) <= before:
                time.sleep(0.05)
            seen = reports_of(visit, name)
            yield from pages(visit, name, times, "written to")
            if reports_of(visit, name) <= seen:
                sys.exit("pages stood still while reports were written")


def measure_decode(folder: Path, candidates: int, reports: int) -> Iterator[Figure]:
    """A decode from the page and the same by the command, and pages during the decode."""
    params = Params(k=128, h=2, m=64, f=0.5, p=0.5, q=0.75)
    sample = Sample(folder)
    collection = Collection("long", 1, params, period="week", owner="me")
    sample.define(collection)
    weights = {f"site{number}.example": 0.95**number for number in range(60)}
    sample.add(collection, week(0), weights, reports, seed=11)
    sample.store()
    absent = (f"absent{number}.example" for number in range(candidates - len(weights)))
    sample.candidates("long", [*weights, *absent])
    listed = str(sample.definitions / "long.candidates.txt")
    command = [*COMMAND, "decode", "long", "--data", sample.data, "--candidates", listed, "--json"]
    began = time.perf_counter()
    subprocess.run(command, env=environment(), check=True, capture_output=True)
    by_command = time.perf_counter() - began
    with serving(sample) as dashboard:
        visit = dashboard.browser(Role.ANALYST)
        visit.get("/")
        began = time.perf_counter()
        job = re.search(r'data-job="([^"]+)"', visit.get("/collections/long").text)
        if job is None:
            sys.exit("the page started no decode")
        slowest = 0.0
        while True:
            now = json.loads(visit.get(f"/jobs/{job[1]}.json").text)
            if now["state"] not in ("waiting", "running"):
                break
            slowest = max(slowest, asked(visit, "/") / 1000)
            time.sleep(0.02)
        by_page = time.perf_counter() - began
        if now["state"] != "done":
            sys.exit(f"the decode {now['state']}: {now['error']}")
        asked(visit, "/collections/long")
        kept = asked(visit, "/collections/long") / 1000
    allowed = DECODE_RATIO * by_command + 1
    said = f"decode of {candidates:,}"
    yield Figure(f"{said} from the page (command: {by_command:.1f} s)", by_page, allowed, "s")
    yield Figure(f"{said}, other pages meanwhile", slowest, MEANWHILE_SECONDS, "s")
    yield Figure(f"{said}, its page when kept", kept, KEPT_SECONDS, "s")


def measure_charts(folder: Path, path: str, times: int) -> Iterator[Figure]:
    """Milliseconds from the address to the last chart, with an empty cache; the median."""
    from playwright.sync_api import sync_playwright

    home = "/collections/homepage"
    shown = {
        "results, strings": home,
        "results, categories": "/collections/browser",
        "results, numbers": "/collections/start-time",
        "trends": f"{home}/trends",
        "diagnostics": f"{home}/diagnostics",
    }
    with (
        serving(sample_folder(folder)) as dashboard,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        state = logged_in(browser, dashboard)
        for name, address in shown.items():
            taken = [cold(browser, dashboard, state, address) for _ in range(times + 1)]
            goal = CHART_MS.get(name, OTHER_CHART_MS)  # the first one was decoded
            yield Figure(f"charts of {name}, cold", statistics.median(taken[1:]), goal, "ms")
        browser.close()


def logged_in(browser, dashboard: Dashboard):
    """The cookies of an analyst's session."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(dashboard.link(Role.ANALYST))
    page.get_by_role("button", name="Log in as").click()
    page.wait_for_url(f"{dashboard.url}/")
    state = context.storage_state()
    context.close()
    return state


def cold(browser, dashboard: Dashboard, state, address: str) -> float:
    """Milliseconds until the charts of one page are drawn, in a new context."""
    context = browser.new_context(storage_state=state, viewport={"width": 1280, "height": 900})
    page = context.new_page()
    began = time.perf_counter()
    page.goto(f"{dashboard.url}{address}")
    page.wait_for_selector("#state[data-state=ready]", state="attached", timeout=300_000)
    page.wait_for_function(DRAWN, timeout=300_000)
    taken = 1000 * (time.perf_counter() - began)
    context.close()
    return taken


def show(figure: Figure) -> None:
    print(
        f"  {figure.name:<58} {figure.found:>9,.2f} {figure.unit:<2} "
        f"goal {figure.goal:>9,.2f}   {'kept' if figure.kept else 'BROKEN'}",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--output", type=Path, help="also write the JSON to a file")
    parser.add_argument("--quick", action="store_true", help="smaller sizes, fewer rounds")
    args = parser.parse_args()
    path, found = chromium(), []
    names, periods, times = (20, 60, 5) if args.quick else (100, 365, 20)
    candidates = 10_000 if args.quick else 100_000
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        parts = [
            (f"Dashboard, {names} collections with {periods} periods",
             measure_pages(folder / "pages", names, periods, times)),
            ("Decoding from a page", measure_decode(folder / "decode", candidates, 10**6)),
        ]  # fmt: skip
        if path is not None:
            rounds = 3 if args.quick else 7
            parts.append(("In Chromium", measure_charts(folder / "charts", path, rounds)))
        for title, figures in parts:
            if not args.json:
                print(f"{title}\n", flush=True)
            for figure in figures:
                found.append(figure)
                if not args.json:
                    show(figure)
            if not args.json:
                print()
    if path is None:
        print("charts: skipped, no Chromium is installed (or CHROMIUM=PATH)", file=sys.stderr)
    document = {"figures": [asdict(figure) | {"kept": figure.kept} for figure in found]}
    text = json.dumps(document, indent=2)
    if args.output:
        args.output.write_text(text + "\n", "utf-8")
    if args.json:
        print(text)
    broken = [figure for figure in found if not figure.kept]
    for figure in broken:
        missed = f"{figure.found:,.2f} {figure.unit}, goal {figure.goal:,.2f}"
        print(f"FALLS SHORT: {figure.name}: {missed}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
