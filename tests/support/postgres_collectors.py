"""Collectors on one database and one port: a process that forks one for each line it reads.

A line is the number of days by which the new collector's clock is off.
"""

import contextlib
import os
import signal
import sys
import threading
from datetime import date, timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import psycopg  # noqa: F401 - imported once for all forks

import rappor.store.postgres.store  # noqa: F401
from rappor.collector import process
from rappor.collector.settings import CollectorSettings
from rappor.host import die_with_parent
from support.planted_collector import BUGS


def run(days_off: str, bug: str, url: str, collections: str, port: str, day: str) -> int:
    today = date.fromisoformat(day) + timedelta(days=int(days_off))
    settings = CollectorSettings(
        data=None, collections=collections, port=int(port), rate=0, store=url, share_port=True
    )
    return process.run(settings, today=lambda: today, **BUGS[bug])


def reap(pid: int) -> None:
    os.waitpid(pid, 0)
    os.write(2, f"gone {pid}\n".encode())


if __name__ == "__main__":
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            with contextlib.suppress(BaseException):
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                die_with_parent()
                os._exit(run(line.strip(), *sys.argv[1:6]))
            os._exit(99)
        os.write(2, f"pid {pid}\n".encode())  # in one piece: its child writes there too
        threading.Thread(target=reap, args=(pid,), daemon=True).start()
