"""Forget: delete a client's secret and ledger, but keep what they cost (§6).

A new secret draws a second B' for every value. Anyone who kept the old reports then has two looks
at the same values. So the old ε is carried over, and counts against the limits of each collection.
The last reported period is carried over too: a new secret gives no period a second report.
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
        epsilon: what was spent with the old secrets, rounded up; it stays spent.
        text: the same in words.
    """

    epsilon: float
    text: str


class _Carried(NamedTuple):
    """What is never deleted: ε by collection, groups, and the last reported periods."""

    carried: dict[str, float]
    groups: dict[str, str]
    floors: dict[str, str]


def forget(disk: Disk, collections: Mapping[str, Collection], today: datetime.date) -> Forgotten:
    """Delete everything except the ε it cost. Call it while holding the lock."""
    carried, groups, floors = _spent(disk, collections, today)
    save_forgotten(disk, carried, groups, floors)
    for folder in (OUTBOX, SENT, ONCE):
        for name in disk.names(folder):
            disk.remove(name)
    # The ledger goes last: until then, forget() can be repeated.
    for name in (COUNTS, RETRY, SECRET, USED, LEDGER):
        disk.remove(name)
    total = add_up((epsilon, 1) for epsilon in carried.values())
    return Forgotten(
        total,
        f"The secret, the ledger and all reports stored here are deleted. Reports that were sent "
        f"cannot be recalled, and the ε = {up(total)} they cost stays spent. A new secret gives a "
        "second look at the same values: its ε adds to this one, and the limits of the "
        "collections count both.",
    )


def _spent(disk: Disk, collections: Mapping[str, Collection], today: datetime.date) -> _Carried:
    """What is kept. If the ledger is lost or too old, assume that every limit was reached."""
    try:
        return _kept(find_ledger(disk) or load_forgotten(disk))
    except Stopped:
        known = _kept(_readable_rest(disk))
    for name, collection in collections.items():
        known.carried[name] = max(known.carried.get(name, 0.0), collection.max_epsilon)
        if collection.group is not None:
            known.groups[name] = collection.group
        periods = [known.floors.get(name), period_of(collection.period, today)]
        known.floors[name] = latest(period for period in periods if period is not None)
    return known


def _kept(ledger: Ledger) -> _Carried:
    names = {account.collection for account in ledger.accounts} | set(ledger.carried)
    floors = {
        name: latest((*ledger.used.get(name, {}), *ledger.floors.get(name, "").split()))
        for name in {name for name, used in ledger.used.items() if used} | set(ledger.floors)
    }
    carried = {name: ledger.epsilon([name]) for name in names}
    return _Carried(carried, dict(ledger.groups), floors)


def _readable_rest(disk: Disk) -> Ledger:
    """What can still be read: an old ledger, or what earlier forgetting kept."""
    with contextlib.suppress(Stopped):
        data = disk.read(LEDGER)
        if data is not None:
            return parse_ledger(data)
    with contextlib.suppress(Stopped):
        return load_forgotten(disk)
    return Ledger("")
