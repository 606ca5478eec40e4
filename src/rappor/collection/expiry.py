"""The end of a collection: when it is near, and what happens to its data on that day (§6.1)."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from enum import StrEnum

from rappor.collection.definition import Collection

NOTICE_DAYS = 14  # the end of a collection is announced this many days ahead


class ExpiryState(StrEnum):
    """Where a collection stands between its start and its end."""

    ACTIVE = "active"
    EXPIRING = "expiring"
    EXPIRED = "expired"


def days_left(collection: Collection, today: datetime.date) -> int | None:
    """The days until no report is accepted: 0 or less if it has expired, None without an end."""
    return None if collection.expires is None else (collection.expires - today).days


def expiry_state(collection: Collection, today: datetime.date) -> ExpiryState:
    """Whether a collection has expired, or will within `NOTICE_DAYS`.

    >>> from rappor.params import Params
    >>> made = Collection("c", 1, Params.preset("windows"), expires=datetime.date(2026, 12, 1))
    >>> [str(expiry_state(made, datetime.date(2026, 11, day))) for day in (16, 17)]
    ['active', 'expiring']
    >>> str(expiry_state(made, datetime.date(2026, 12, 1)))
    'expired'
    """
    left = days_left(collection, today)
    if left is None or left > NOTICE_DAYS:
        return ExpiryState.ACTIVE
    return ExpiryState.EXPIRING if left > 0 else ExpiryState.EXPIRED


def expiring(collections: Iterable[Collection], today: datetime.date) -> list[Collection]:
    """The collections that end within `NOTICE_DAYS`, the next end first."""
    soon = [item for item in collections if expiry_state(item, today) is ExpiryState.EXPIRING]
    return sorted(soon, key=lambda item: (item.expires or today, item.name, item.version))


def at_expiry(collection: Collection) -> str:
    """What happens to the data on the day of expiry, in words.

    >>> from rappor.params import Params
    >>> at_expiry(Collection("c", 1, Params.preset("windows")))
    'all its counts and reports are deleted'
    """
    if collection.on_expiry == "delete":
        return "all its counts and reports are deleted"
    return "its single reports are deleted, and its counts stay"


def announcement(collection: Collection, today: datetime.date) -> str:
    """One sentence about an end that is near.

    >>> from rappor.params import Params
    >>> made = Collection("c", 1, Params.preset("windows"), expires=datetime.date(2026, 12, 1))
    >>> print(announcement(made, datetime.date(2026, 11, 30)))
    c v1 expires on 2026-12-01, in 1 day: from then on no report is accepted, and all its counts and reports are deleted
    """  # noqa: E501 - one line of output
    left = days_left(collection, today)
    return (
        f"{collection.name} v{collection.version} expires on {collection.expires}, in {left} "
        f"day{'' if left == 1 else 's'}: from then on no report is accepted, and "
        f"{at_expiry(collection)}"
    )
