"""Seen: what lies in a client's directory, looked at without a lock and without touching it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rappor.client.accounts import Ledger
from rappor.client.consent import opted_out
from rappor.client.folder import Disk
from rappor.client.identity import LEDGER, SECRET, parse_secret, was_used
from rappor.client.ledger_file import find_ledger, load_forgotten
from rappor.client.outbox import Outbox
from rappor.client.problems import Stopped


@dataclass(frozen=True, slots=True)
class Inspection:
    """A directory at one moment.

    Attributes:
        problem: a code of `PROBLEMS`, or None.
        opted_out: whether the person opted out.
        ledger: empty if there is none, or none that can be read.
        waiting: batches in the outbox.
        batches: what became of batches, over all processes.
    """

    problem: str | None
    opted_out: bool
    ledger: Ledger
    waiting: int
    batches: Mapping[str, int]


def look_at(disk: Disk, account_secret: bool = False) -> Inspection:
    """What the files say. Never raises.

    Args:
        disk: the directory.
        account_secret: whether the secret is an account's, so that no file need hold it.
    """
    problem, out, ledger, waiting = None, False, Ledger(""), 0
    batches: Mapping[str, int] = {}
    outbox = Outbox(disk)
    try:
        out = opted_out(disk)
        waiting, batches = len(outbox.names()), outbox.counts()
        problem = None if account_secret else _secret_problem(disk)
        ledger = find_ledger(disk) or load_forgotten(disk)
    except Stopped as error:
        problem = problem or error.code
    except OSError:
        problem = "directory-unusable"
    return Inspection(problem, out, ledger, waiting, batches)


def _secret_problem(disk: Disk) -> str | None:
    data = disk.read(SECRET)
    if data is not None:
        parse_secret(data)
        return None
    used = was_used(disk) or disk.read(LEDGER) is not None
    return "secret-missing" if used else None
