"""What a client costs its host: report() in bad circumstances, the end of a process, opting out.

Real processes, files and sockets. Circumstances take turns, and the best round of each counts: what
other programs of the machine do is not the client's. A time above its goal is said, and makes the
exit code 1.

    make bench                             all of it, about a minute
    python benchmarks/client.py --quick    one round with fewer calls, for a look
"""

import argparse
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rappor import Params
from rappor.client import Client
from rappor.client.clock import SystemClock
from rappor.client.transport import HttpTransport
from rappor.collection import Collection

PARAMS = Params.preset("windows")
MAX_REPORT_US = 1000.0  # the 99th percentile of report(), in every circumstance
MAX_END = 3.0  # seconds: the 2 that the client may wait, and what an interpreter needs
MAX_OPT_OUT = 3.0  # likewise, with a lock that another process keeps
ANSWER_LIMIT = 0.7  # seconds that a request is given here; a client gives it 10
MAX_ANSWER, MAX_ANSWER_CPU = 2.5, 1.5  # seconds until it is given up, and of the processor
FLOODS = {
    "silence": b"",
    "drop by drop": b"H",
    "go on, go on": b"HTTP/1.1 100 Continue\r\n\r\n" * 1000,
}


# In a process of its own: one circumstance.


def opened(directory: str, url: str | None, collections: int = 20, **given: Any) -> Client:
    """A client of collections c0, c1 and so on."""
    many = [Collection(f"c{number}", 1, PARAMS, max_values=3) for number in range(collections)]
    return Client.open(directory, many, consent=True, upload_to=url, jitter=0, **given)


def times_of(client: Client, calls: int, pause: float = 0.001, value: object = "a.org") -> list:
    """Seconds of each call to report(), one every millisecond."""
    times = []
    for number in range(calls):
        began = time.perf_counter()
        client.report(f"c{number % 20}", value)
        times.append(time.perf_counter() - began)
        if pause:
            time.sleep(pause)
    return times


def in_one_thread(directory: str, url: str, calls: int) -> list:
    return times_of(opened(directory, url), calls)


def in_one_burst(directory: str, url: str, calls: int) -> list:
    return times_of(opened(directory, url), calls, pause=0.0)


def with_a_huge_value(directory: str, url: str, calls: int) -> list:
    return times_of(opened(directory, url), calls, value="x" * 3_000_000)


def with_a_full_disk(directory: str, url: str, calls: int) -> list:
    import resource

    client = opened(directory, url)
    client.report("c0", "a.org")
    client.flush(60)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    times = times_of(client, calls)
    client.flush(60)
    if client.status().problem != "disk-full":
        sys.exit(f"the disk was to be full, and the problem is {client.status().problem}")
    return times


def with_no_directory(directory: str, url: str, calls: int) -> list:
    Path(directory).write_text("in the way", "ascii")
    client = opened(directory, url)
    times = times_of(client, calls)
    client.flush(60)
    if client.status().problem != "directory-unusable":
        sys.exit(f"the directory was not to be used, and {client.status().problem}")
    return times


def in_fifty_threads(directory: str, url: str, calls: int) -> list:
    """A hundred calls a second of each thread."""
    client, times = opened(directory, url), []

    def run(thread: int) -> None:
        begin = time.monotonic() + thread * 0.0002
        for number in range(calls // 5):
            time.sleep(max(0.0, begin + number * 0.01 - time.monotonic()))
            before = time.perf_counter()
            client.report(f"c{number % 20}", f"value {thread % 3}")
            times.append(time.perf_counter() - before)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(50)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return times


def with_other_processes(directory: str, url: str, calls: int) -> list:
    client = opened(directory, url)
    print("ready", flush=True)
    sys.stdin.readline()
    return times_of(client, calls)


# What a process does, how many of them there are, and which collector they have.
REPORTS: dict[str, tuple[Callable[[str, str, int], list], int, str]] = {
    "collector answers": (in_one_thread, 1, "answers"),
    "collector down": (in_one_thread, 1, "down"),
    "collector down, in one burst": (in_one_burst, 1, "down"),
    **{f"hostile collector: {name}": (in_one_thread, 1, name) for name in FLOODS},
    "disk full": (with_a_full_disk, 1, "down"),
    "unusable directory": (with_no_directory, 1, "down"),
    "a value of 3 MB": (with_a_huge_value, 1, "down"),
    "50 threads, 100 calls/s each": (in_fifty_threads, 1, "answers"),
    "4 processes, one directory": (with_other_processes, 4, "answers"),
}


def end_of_a_process(directory: str, url: str) -> None:
    """Report, and say when the program has come to its end; the interpreter has not."""
    client = opened(directory, url, 1)
    client.report("c0", "a.org")
    print(time.monotonic(), flush=True)


def inside(name: str, directory: str, url: str, calls: int) -> None:
    """What the process for one circumstance does."""
    if name == "end":
        end_of_a_process(directory, url)
        return
    print(json.dumps(REPORTS[name][0](directory, url, calls)), flush=True)
    os._exit(0)  # how long the end takes is measured by itself


# In this process: collectors, and other processes to measure.


@contextlib.contextmanager
def collectors() -> Iterator[dict[str, str]]:
    """Their addresses: one that answers, one that is down, and the hostile ones."""
    over = threading.Event()
    sockets = []

    def serve(behave: Callable[[socket.socket], None]) -> str:
        listening = socket.create_server(("127.0.0.1", 0), backlog=100)
        sockets.append(listening)

        def run(accepted: socket.socket) -> None:
            with accepted, contextlib.suppress(OSError):  # the client has had enough
                behave(accepted)

        def accept() -> None:
            with contextlib.suppress(OSError):  # the end
                while True:
                    accepted, _ = listening.accept()
                    threading.Thread(target=run, args=(accepted,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        return f"http://127.0.0.1:{listening.getsockname()[1]}"

    def answer(accepted: socket.socket) -> None:
        got = b""
        while b"\r\n\r\n" not in got or not got.partition(b"\r\n\r\n")[2]:
            part = accepted.recv(65_536)
            if not part:
                return
            got += part
        accepted.sendall(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        accepted.recv(65_536)

    def flooding(flood: bytes) -> Callable[[socket.socket], None]:
        def behave(accepted: socket.socket) -> None:
            while not over.wait(0.0 if len(flood) > 1 else 0.1):
                accepted.sendall(flood)

        return behave

    with socket.socket() as taken:  # bound and not listening: connections are refused
        taken.bind(("127.0.0.1", 0))
        found = {"answers": serve(answer), "down": f"http://127.0.0.1:{taken.getsockname()[1]}"}
        yield found | {name: serve(flooding(flood)) for name, flood in FLOODS.items()}
    over.set()
    for each in sockets:
        each.shutdown(socket.SHUT_RDWR)
        each.close()


def start(name: str, directory: Path, url: str, calls: int = 0) -> "subprocess.Popen[str]":
    """A process for one circumstance."""
    command = [sys.executable, __file__, "--inside", name, str(directory), url, str(calls)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def end(process: "subprocess.Popen[str]") -> str:
    """What it printed."""
    said, _ = process.communicate(timeout=300)
    if process.returncode:
        sys.exit(f"a process ended with {process.returncode}")
    return said


def percentiles(name: str, directory: Path, url: str, calls: int) -> dict[str, float]:
    """Microseconds of report(); of several processes the worst."""
    running = [start(name, directory, url, calls) for _ in range(REPORTS[name][1])]
    if len(running) > 1:
        for each in running:
            each.stdout.readline()
        for each in running:
            each.stdin.write("go\n")
            each.stdin.flush()
    cuts = [statistics.quantiles(json.loads(end(each)), n=100) for each in running]
    return {"p50_us": 1e6 * max(c[49] for c in cuts), "p99_us": 1e6 * max(c[98] for c in cuts)}


def seconds_to_end(directory: Path, url: str) -> float:
    """From the last statement of a program that reported to the end of its process."""
    process = start("end", directory, url)
    last = float(end(process))
    return time.monotonic() - last


def seconds_to_opt_out(directory: Path, url: str) -> float:
    """In the middle of an upload."""
    client = opened(str(directory), url, 1)
    client.report("c0", "a.org")
    while client._sender.busy_since is None:
        time.sleep(0.001)
    began = time.monotonic()
    done = client.opt_out()
    took = time.monotonic() - began
    client.close()
    if not done:
        sys.exit("opting out did not succeed")
    return took


def seconds_to_opt_out_during_upload(directory: Path, url: str) -> float:
    """While another process, here another client, is in the middle of an upload."""
    other = opened(str(directory), url, 1)
    other.report("c0", "a.org")
    while other._sender.busy_since is None:
        time.sleep(0.001)
    client = opened(str(directory), None, 1)
    began = time.monotonic()
    client.opt_out()
    took = time.monotonic() - began
    client.close()
    other.opt_out()
    other.close()
    return took


def seconds_of_an_answer(url: str) -> tuple[float, float]:
    """Until an answer without end is given up, and how many of them are the processor's."""
    began, spent = time.monotonic(), time.process_time()
    with contextlib.suppress(OSError):
        HttpTransport(url, clock=SystemClock()).post(b"x", ANSWER_LIMIT)
    return time.monotonic() - began, time.process_time() - spent


def measure(rounds: int, calls: int) -> tuple[dict[str, dict[str, float]], dict[str, tuple]]:
    """The best round of each circumstance; the durations with their goals."""
    best: dict[str, dict[str, float]] = {}
    durations: dict[str, tuple[float, float]] = {}

    def note(what: str, seconds: float, goal: float) -> None:
        durations[what] = (min(seconds, durations.get(what, (seconds, goal))[0]), goal)

    with tempfile.TemporaryDirectory() as name, collectors() as urls:
        for number in range(rounds):
            folder = Path(name) / str(number)
            folder.mkdir()
            for position, (what, (_, _, collector)) in enumerate(REPORTS.items()):
                print(f"\r  round {number + 1}: {what:<40}", end="", file=sys.stderr, flush=True)
                found = percentiles(what, folder / str(position), urls[collector], calls)
                if what not in best or found["p99_us"] < best[what]["p99_us"]:
                    best[what] = found
            print(f"\r  round {number + 1}: {'durations':<40}", end="", file=sys.stderr, flush=True)
            for position, flood in enumerate(FLOODS):
                took = seconds_to_end(folder / f"end{position}", urls[flood])
                note(f"end of a process, {flood}", took, MAX_END)
            took = seconds_to_opt_out(folder / "out", urls["silence"])
            note("opt_out() in the middle of an upload", took, MAX_OPT_OUT)
            took = seconds_to_opt_out_during_upload(folder / "shared", urls["silence"])
            note("opt_out() during another process's upload", took, MAX_OPT_OUT)
            for flood in FLOODS:
                took, spent = seconds_of_an_answer(urls[flood])
                note(f"answer without end, {flood}", took, MAX_ANSWER)
                note(f"  processor time, {flood}", spent, MAX_ANSWER_CPU)
    print(file=sys.stderr)
    return best, durations


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--output", type=Path, help="also write the JSON to a file")
    parser.add_argument("--quick", action="store_true", help="one round with fewer calls")
    parser.add_argument("--inside", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        name, directory, url, calls = args.inside
        inside(name, directory, url, int(calls))
        return 0
    os.environ.pop("DO_NOT_TRACK", None)
    reports, durations = measure(1, 300) if args.quick else measure(3, 1000)
    kept = {what: each["p99_us"] < MAX_REPORT_US for what, each in reports.items()} | {
        what: seconds <= goal for what, (seconds, goal) in durations.items()
    }
    document = {
        "report": {
            what: each | {"goal_p99_us": MAX_REPORT_US, "kept": kept[what]}
            for what, each in reports.items()
        },
        "durations": {
            what.strip(): {"seconds": seconds, "goal": goal, "kept": kept[what]}
            for what, (seconds, goal) in durations.items()
        },
    }
    text = json.dumps(document, indent=2)
    if args.output:
        args.output.write_text(text + "\n", "utf-8")
    if args.json:
        print(text)
    else:
        print("Client: report(), in microseconds\n")
        for what, each in reports.items():
            print(
                f"  {what:<38} p50 {each['p50_us']:>7,.1f}   p99 {each['p99_us']:>9,.1f}"
                f"   goal below {MAX_REPORT_US:>6,.0f}   {'kept' if kept[what] else 'BROKEN'}"
            )
        print("\nClient: what takes longer, in seconds\n")
        for what, (seconds, goal) in durations.items():
            verdict = "kept" if kept[what] else "BROKEN"
            print(f"  {what:<38} {seconds:>7.2f}   goal at most {goal:>5.2f}   {verdict}")
    return 0 if all(kept.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
