"""The JavaScript client's budgets: bundles, one report in Node.js, report() in Chromium.

Bundles are built as for a release and compressed with gzip. The best round counts: what other
programs of the machine do is not the client's. Where no Chromium is installed that part is left
out, which is said. A budget that is not kept is said, and makes the exit code 1.

    make bench                                 all of it, half a minute
    python benchmarks/javascript.py --quick    fewer rounds and calls, for a look
"""

import argparse
import json
import socket
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from rappor import Params
from support.chromium import chromium
from support.javascript import PACKAGE, node
from support.javascript_host import homepage
from support.javascript_page import SourceServer, recording, serving

BUNDLES = {"rappor": ("whole client", 9.0), "encoder": ("encoder alone", 4.0)}  # KB, gzipped
KB = 1024
ENCODE_US = 50.0
REPORT_MS = 1.0
PARAMS = Params(k=128, h=2, m=16, f=0.5, p=0.5, q=0.75)


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


def in_node(script: str, *arguments: str) -> dict:
    """What a script of the package prints, as JSON."""
    command = [node(), str(PACKAGE / script), *arguments]
    done = subprocess.run(command, cwd=PACKAGE, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def measure_bundles() -> Iterator[Figure]:
    """Kilobytes of each bundle that has a goal."""
    sizes = in_node("tools/build.js")
    for name, (what, goal) in BUNDLES.items():
        yield Figure(f"{what}, gzipped", sizes[name]["gzipped"] / KB, goal, "KB")


def measure_encoder(rounds: int) -> Iterator[Figure]:
    """Microseconds of one report in Node.js."""
    found = in_node("tests/bench.js", str(rounds))["microseconds"]
    yield Figure(f"one report, k = {PARAMS.k}", found, ENCODE_US, "µs")


def percentile(browser, sources: SourceServer, address: str, script: str, calls: int) -> float:
    """The 99th percentile of report() in a new context, in milliseconds."""
    collection = homepage(params=PARAMS, reports_per_period=10_000, max_values=1_000_000)
    options = {"collections": [collection.to_client_json()], "consent": True, "uploadTo": address}
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(300_000)
    page.goto(sources.page)
    page.wait_for_function("() => globalThis.ready")
    page.evaluate("(options) => open_(options)", options)
    times = page.evaluate(script, calls)
    context.close()
    return statistics.quantiles(times, n=100)[98]


# How report() is called: the options of timeReports in clients/js/tests/page.js.
CALLS = {
    "": "{}",
    ", in one burst": "{ burst: true }",
    ", the longest values": "{ value: 'x'.repeat(16000) }",
    ", values of 1 MB (refused)": "{ value: 'x'.repeat(1e6) }",
}


def measure_reports(path: str, rounds: int, calls: int) -> Iterator[Figure]:
    """The 99th percentile of report() in a page: with a collector, without one, in a burst."""
    from playwright.sync_api import sync_playwright

    with (
        serving() as sources,
        recording() as received,
        socket.socket() as taken,  # bound and not listening: connections are refused
        sync_playwright() as playwright,
    ):
        taken.bind(("127.0.0.1", 0))
        down = f"http://127.0.0.1:{taken.getsockname()[1]}"
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for where, address in (("collector answers", received.url), ("collector down", down)):
            for how, options in CALLS.items():
                script = f"(calls) => timeReports('homepage', calls, {options})"
                found = min(
                    percentile(browser, sources, address, script, calls) for _ in range(rounds)
                )
                yield Figure(f"report() p99, {where}{how}", found, REPORT_MS, "ms")
        browser.close()


def show(figure: Figure) -> None:
    print(
        f"  {figure.name:<58} {figure.found:>8,.2f} {figure.unit:<2} "
        f"goal {figure.goal:>8,.2f}   {'kept' if figure.kept else 'BROKEN'}",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--output", type=Path, help="also write the JSON to a file")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and calls")
    args = parser.parse_args()
    path, found = chromium(), []
    rounds, calls = (1, 300) if args.quick else (3, 1000)
    parts = [
        ("JavaScript client: bundles", measure_bundles()),
        ("JavaScript client: in Node.js", measure_encoder(5 if args.quick else 30)),
    ]
    if path is not None:
        parts.append(("JavaScript client: in Chromium", measure_reports(path, rounds, calls)))
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
        print("report(): skipped, no Chromium is installed (or CHROMIUM=PATH)", file=sys.stderr)
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
