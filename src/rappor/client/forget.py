"""Forget: delete a client's secret and ledger, keep what they cost, and say it (R58).

A new secret draws every B' anew. Whoever kept the old reports has two looks at the same values, so
the old ε is carried over: it counts against the limits of every collection from then on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal

from rappor.client.folder import Disk
from rappor.client.identity import LEDGER, SECRET, USED
from rappor.client.ledger_file import load_forgotten, parse_ledger, save_forgotten
from rappor.client.once import ONCE
from rappor.client.outbox import COUNTS, OUTBOX, SENT
from rappor.client.problems import Stopped
from rappor.client.sender import RETRY
from rappor.collection import Collection
from rappor.privacy.loss import add_up


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What forget() did.

    Attributes:
        epsilon: what was spent under the old secrets, rounded up; it stays spent.
        text: what that means.
    """

    epsilon: float
    text: str


def forget(disk: Disk, collections: Mapping[str, Collection]) -> Forgotten:
    """Delete everything but the sum of what it cost. Call it under the lock."""
    carried, groups = _spent(disk, collections)
    save_forgotten(disk, carried, groups)
    for folder in (OUTBOX, SENT, ONCE):
        for name in disk.names(folder):
            disk.remove(name)
    for name in (COUNTS, RETRY, SECRET, USED, LEDGER):  # the ledger last: until then, try again
        disk.remove(name)
    total = add_up((epsilon, 1) for epsilon in carried.values())
    return Forgotten(
        total,
        f"Deleted: the secret, the ledger, all reports kept here. Reports that were sent stay "
        f"sent, and the ε = {_up(total)} they cost stays spent. A new secret starts a second look "
        "at the same values: its ε adds to this one, and the limits of the collections count both.",
    )


def _spent(
    disk: Disk, collections: Mapping[str, Collection]
) -> tuple[dict[str, float], dict[str, str]]:
    """ε by collection, and their groups. Where the ledger is lost, the limit it has kept to."""
    data = disk.read(LEDGER)
    try:
        if data is not None or disk.read(USED) is None:
            ledger = load_forgotten(disk) if data is None else parse_ledger(data)
            names = {each.collection for each in ledger.accounts} | set(ledger.carried)
            return {name: ledger.epsilon([name]) for name in names}, dict(ledger.groups)
    except Stopped:
        pass
    groups = {name: each.group for name, each in collections.items() if each.group is not None}
    return {name: each.most_epsilon for name, each in collections.items()}, groups


def _up(epsilon: float) -> str:
    """ε in four places, never rounded down."""
    if epsilon == math.inf:
        return "∞"
    return str(Decimal(epsilon).quantize(Decimal("0.0001"), ROUND_CEILING, Context(prec=400)))
