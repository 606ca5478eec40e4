"""What the dashboard's state holds, as frozen records."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from rappor.dashboard.auth.roles import Role


@dataclass(frozen=True, slots=True)
class Account:
    """Who may log in.

    Attributes:
        name: unique among the accounts that are not revoked, and never used again.
        role: what it may do.
        made: when, in UTC.
        maker: who made it.
        by_token: whether it has a token, beside one-time links.
        revoked: when it was revoked; None while it is good.
        sessions: how many browsers are logged in with it.
    """

    name: str
    role: Role
    made: str
    maker: str
    by_token: bool
    revoked: str | None = None
    sessions: int = 0


@dataclass(frozen=True, slots=True)
class CandidateList:
    """One version of a collection's list of candidates.

    Attributes:
        collection: whose.
        version: 1, 2, …
        strings: the candidates, in the order given.
        made: when, in UTC.
        actor: who saved it.
    """

    collection: str
    version: int
    strings: tuple[str, ...] = field(repr=False)
    made: str
    actor: str


@dataclass(frozen=True, slots=True)
class CandidateVersion:
    """A version of a list without its strings."""

    collection: str
    version: int
    size: int
    made: str
    actor: str


@dataclass(frozen=True, slots=True)
class SavedResult:
    """What a job found.

    Attributes:
        key: the digest of all that changes it.
        collection: whose result it is.
        kind: of the job, such as "decode".
        meta: a JSON object.
        table: Arrow IPC bytes, or None.
        made: when, in UTC.
    """

    key: str
    collection: str
    kind: str
    meta: dict[str, Any] = field(repr=False)
    table: bytes | None = field(repr=False)
    made: datetime


@dataclass(frozen=True, slots=True)
class SavedJob:
    """A job as it was last saved; `document` is what the job says about itself."""

    id: str
    kind: str
    key: str
    status: str
    document: dict[str, Any]
    made: str
