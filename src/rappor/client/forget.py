"""Forget: delete a client's secret and ledger, keep what they cost, and say it (R58).

A new secret draws every B' anew. Whoever kept the old reports has two looks at the same values, so
the old ε is carried over: it counts against the limits of every collection from then on. So is the
last period that was reported on: a new secret gives no period a second report.
"""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from rappor.client.accounts import Ledger
from rappor.client.charging import latest
from rappor.client.folder import Disk
from rappor.client.identity import LEDGER, ONCE, SECRET, USED
from rappor.client.ledger_file import find_ledger, load_forgotten, parse_ledger, save_forgotten
from rappor.client.outbox import COUNTS, OUTBOX, SENT
from rappor.client.problems import Stopped
from rappor.client.sender import RETRY
from rappor.collection import Collection, period_of
from rappor.privacy.loss import add_up
from rappor.privacy.rounding import up


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What forget() did.

    Attributes:
        epsilon: what was spent under the old secrets, rounded up; it stays spent.
        text: what that means.
    """

    epsilon: float
    text: str


class _Kept(NamedTuple):
    """What no forgetting deletes: ε by collection, groups, and up to when there are reports."""

    carried: dict[str, float]
    groups: dict[str, str]
    floors: dict[str, str]


def forget(disk: Disk, collections: Mapping[str, Collection], today: datetime.date) -> Forgotten:
    """Delete everything but the sum of what it cost. Call it under the lock."""
    carried, groups, floors = _spent(disk, collections, today)
    save_forgotten(disk, carried, groups, floors)
    for folder in (OUTBOX, SENT, ONCE):
        for name in disk.names(folder):
            disk.remove(name)
    for name in (COUNTS, RETRY, SECRET, USED, LEDGER):  # the ledger last: until then, try again
        disk.remove(name)
    total = add_up((epsilon, 1) for epsilon in carried.values())
    return Forgotten(
        total,
        f"Deleted: the secret, the ledger, all reports kept here. Reports that were sent stay "
        f"sent, and the ε = {up(total)} they cost stays spent. A new secret starts a second look "
        "at the same values: its ε adds to this one, and the limits of the collections count both.",
    )


def _spent(disk: Disk, collections: Mapping[str, Collection], today: datetime.date) -> _Kept:
    """What stays. Where the ledger is lost or too old, the limits it has kept to, up to today."""
    try:
        return _kept(find_ledger(disk) or load_forgotten(disk))
    except Stopped:
        known = _kept(_whatever(disk))
    for name, each in collections.items():
        known.carried[name] = max(known.carried.get(name, 0.0), each.max_epsilon)
        if each.group is not None:
            known.groups[name] = each.group
        periods = [known.floors.get(name), period_of(each.period, today)]
        known.floors[name] = latest(period for period in periods if period is not None)
    return known


def _kept(ledger: Ledger) -> _Kept:
    names = {each.collection for each in ledger.accounts} | set(ledger.carried)
    floors = {
        name: latest((*ledger.used.get(name, {}), *ledger.floors.get(name, "").split()))
        for name in {name for name, used in ledger.used.items() if used} | set(ledger.floors)
    }
    carried = {name: ledger.epsilon([name]) for name in names}
    return _Kept(carried, dict(ledger.groups), floors)


def _whatever(disk: Disk) -> Ledger:
    """What is left to read: an old ledger, or what was forgotten before; each is too little."""
    with contextlib.suppress(Stopped):
        data = disk.read(LEDGER)
        if data is not None:
            return parse_ledger(data)
    with contextlib.suppress(Stopped):
        return load_forgotten(disk)
    return Ledger("")
