"""1, 2, 4 and 8 collectors on one PostgreSQL server with the same total load.

wrk sends batches of one report with 512 connections to one port, which the collectors share. What
counts is the processor time per report, of collectors and server together: the ratio to that of one
collector carries over from machine to machine. Bytes are those that the database keeps and those
that it writes to its log. docs/scaling.md plans with these figures.

A new store has the tokens of one day. One that has run for 18 days looks for each token in those of
18, which costs the server more than all else: that is measured too, with 1 and 8 collectors.

    make bench                                 all of it, fails if a promise is broken
    python benchmarks/collectors.py --quick    four seconds each, one round, for a look
"""

import argparse
import datetime
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import ingest
from database import Server, database_server, store_for_collectors

from rappor.host import free_port
from rappor.wire import REPORTS_PATH

NUMBERS = (1, 2, 4, 8)
KEPT_DAYS, TOKENS_A_DAY = 18, 50_000
CONNECTIONS = 512
MAX_OVER_ONE = 1.5


@contextmanager
def collectors(folder: Path, number: int, url: str) -> Iterator[tuple[int, int]]:
    """`rappor serve` with some collectors: its process and its port."""
    collections = folder / "collections"
    collections.mkdir(parents=True, exist_ok=True)
    (collections / "bench.toml").write_text(ingest.BENCH.to_toml(), "utf-8")
    port = free_port()
    command = [sys.executable, "-m", "rappor", "serve", "--no-dashboard", "--store", url]
    command += ["--collections", str(collections), "--port", str(port), "--rate", "0"]
    command += ["--collectors", str(number), "--log-level", "error", "--share-port"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        ready(process, port, number)
        yield process.pid, port
        process.terminate()
        process.wait(30)
    finally:
        process.kill()
        process.wait()


def ready(process: subprocess.Popen[bytes], port: int, number: int) -> None:
    """Wait until all collectors listen."""
    until = time.monotonic() + 120
    listening = f":{port:04X} 00000000:0000 0A"
    while Path("/proc/net/tcp").read_text().count(listening) < number:
        if process.poll() is not None or time.monotonic() > until:
            sys.exit("the collectors did not start")
        time.sleep(0.05)
    urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=60).close()


def measure(
    seconds: float, rounds: int, days: int = 1, numbers: tuple[int, ...] = NUMBERS
) -> dict[str, dict[str, float]]:
    """The round of each number of collectors that took the least processor time.

    The rounds are taken in turns, so that a busy machine disturbs all alike: caches that others
    have filled make the same work dearer.
    """
    best: dict[str, dict[str, float]] = {}
    today = datetime.datetime.now(datetime.UTC).date()
    with tempfile.TemporaryDirectory() as name, database_server() as server:
        folder = Path(name)
        (folder / "post.lua").write_text(ingest.SCRIPT, "ascii")
        (folder / "one.bin").write_bytes(ingest.batch_of(1, today))
        for _ in range(rounds):
            for number in numbers:
                url = store_for_collectors(server, ingest.BENCH)
                fill(server, url.rpartition("/")[2], today, days - 1)
                found = measure_round(folder, server, url, number, seconds)
                known = best.setdefault(str(number), found)
                if total_seconds(found) < total_seconds(known):
                    best[str(number)] = found
                done = f"{number} collectors: {found['rate']:,.0f}/s"
                print(f"\r  {done}    ", end="", file=sys.stderr)
    print(file=sys.stderr)
    return best


def fill(server: Server, database: str, today: datetime.date, days: int) -> None:
    """Add random tokens of so many days before today to a store."""
    for day in range(days, 0, -1):
        server.sql(f"SELECT rappor.open_token_day({today.toordinal() - day})", database)
        server.sql(
            "INSERT INTO rappor.tokens SELECT uuid_send(gen_random_uuid()), "
            f"(SELECT part FROM rappor.state) FROM generate_series(1, {TOKENS_A_DAY})",
            database,
        )


def measure_round(
    folder: Path, server: Server, url: str, number: int, seconds: float
) -> dict[str, float]:
    """Processor seconds and bytes per million reports of so many collectors on one database."""
    script, one = folder / "post.lua", folder / "one.bin"
    database = url.rpartition("/")[2]
    with collectors(folder, number, url) as (pid, port):
        address = f"http://127.0.0.1:{port}"
        ingest.wrk(address, "", REPORTS_PATH, one, script, 1, CONNECTIONS)  # warms up
        before = [ingest.processor_seconds(each) for each in (pid, server.pid)]
        wal = int(str(server.sql("SELECT pg_current_wal_lsn() - '0/0'")[0][0]))
        size, commits = used_bytes(server, database), commits_of(server, database)
        done = ingest.wrk(address, "", REPORTS_PATH, one, script, seconds, CONNECTIONS)
        after = [ingest.processor_seconds(each) for each in (pid, server.pid)]
        wal = int(str(server.sql("SELECT pg_current_wal_lsn() - '0/0'")[0][0])) - wal
        size = used_bytes(server, database) - size
        commits = commits_of(server, database) - commits
    stored = done["requests"] - done["failed"]
    millions = stored / 1e6
    used = [(then - now) / millions for now, then in zip(before, after, strict=True)]
    return {
        "rate": done["rate"],
        "failed": done["failed"],
        "collector_seconds_per_million": used[0],
        "server_seconds_per_million": used[1],
        "reports_per_commit": stored / max(1, commits),
        "log_bytes_per_report": wal / stored,
        "stored_bytes_per_report": size / stored,
    }


def total_seconds(found: dict[str, float]) -> float:
    """Of collectors and server together, per million reports."""
    return found["collector_seconds_per_million"] + found["server_seconds_per_million"]


def used_bytes(server: Server, database: str) -> int:
    """Of all tables and indexes."""
    return int(str(server.sql(f"SELECT pg_database_size('{database}')", database)[0][0]))


def commits_of(server: Server, database: str) -> int:
    """Transactions so far; a backend tells them when it is idle for a moment, or once a second."""
    query = f"SELECT xact_commit FROM pg_stat_database WHERE datname = '{database}'"
    return int(str(server.sql(query)[0][0]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--output", type=Path, help="also write the JSON to a file")
    parser.add_argument("--quick", action="store_true", help="four seconds each, one round")
    args = parser.parse_args()
    if shutil.which("wrk") is None:
        print(
            f"collectors: NOT MEASURED: processor time of {NUMBERS} collectors, goal at most "
            f"{MAX_OVER_ONE} x one's, because wrk is not installed (Debian, Ubuntu: apt-get "
            "install wrk)",
            file=sys.stderr,
        )
        return 0
    seconds, rounds = (4, 1) if args.quick else (6, 3)
    found = measure(seconds, rounds)
    old = measure(seconds, 1, KEPT_DAYS, (1, 8))
    totals = {number: total_seconds(each) for number, each in found.items()}
    worst = max(totals.values()) / totals["1"]
    promises = {
        f"at most {MAX_OVER_ONE} x the processor time of one collector": worst <= MAX_OVER_ONE
    }
    result = {"collectors": found, "seconds_per_million": totals, "worst_over_one": worst}
    result["collectors_after_18_days"] = old
    result |= {"cores": os.cpu_count(), "promises": promises}
    text = json.dumps(result, indent=2)
    if args.output:
        args.output.write_text(text + "\n")
    print(text if args.json else describe(result))
    return 0 if all(promises.values()) else 1


def describe(result: dict) -> str:
    lines = [f"Collectors on PostgreSQL, {CONNECTIONS} connections, batches of one report", ""]
    lines.append(
        "  collectors   reports/s   a commit   core-seconds a million   log, stored bytes a report"
    )
    for days, found in ((1, result["collectors"]), (KEPT_DAYS, result["collectors_after_18_days"])):
        lines.append(f"  tokens of {days} {'day' if days == 1 else 'days'}:")
        lines += [line_of(number, each) for number, each in found.items()]
    lines += ["", f"  at most {result['worst_over_one']:.2f} x one collector's", ""]
    for name, kept in result["promises"].items():
        lines.append(f"  {'kept  ' if kept else 'BROKEN'}  {name}")
    return "\n".join(lines)


def line_of(number: str, each: dict[str, float]) -> str:
    parts = [each[f"{who}_seconds_per_million"] for who in ("collector", "server")]
    kept = f"{each['log_bytes_per_report']:,.0f}, {each['stored_bytes_per_report']:,.0f}"
    return (
        f"  {number:>10}   {each['rate']:>9,.0f}   {each['reports_per_commit']:>8.1f}   "
        f"{total_seconds(each):>6.1f} ({parts[0]:.1f} + {parts[1]:.1f})            {kept}"
    )


if __name__ == "__main__":
    sys.exit(main())
