"""Accounts, one-time links and sessions. Secrets have 192 random bits; their SHA-256 is stored.

A session ends after eight hours without a request, after seven days in any case, when its account
is revoked, and when its visitor logs out. A session more than five minutes in the future was made
while the clock was wrong, and has ended too: otherwise it would last until that time.
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
import sqlite3
from dataclasses import dataclass
from datetime import datetime, timedelta

from rappor.checks import show
from rappor.dashboard.auth.roles import Role
from rappor.dashboard.state.database import text_of
from rappor.errors import ParamsError

TOKEN_PREFIX = "rpd_"  # noqa: S105 - what a token begins with, not one
LINK_LIFE = timedelta(minutes=15)
SESSION_IDLE = timedelta(hours=8)
SESSION_LIFE = timedelta(days=7)
_NAME = re.compile(r"[a-z][a-z0-9._-]{0,62}")
_TOUCH_SECONDS = 60  # how often a session's last use is saved
_AHEAD_SECONDS = 300  # that a clock may be set back without ending a session
# The condition of a session that has ended; `_over` gives its values.
_OVER = "seen <= ? OR began <= ? OR seen > ?"


@dataclass(frozen=True, slots=True)
class Account:
    """Who may log in.

    Attributes:
        name: unique; it is not used again after the account is revoked.
        role: what it may do.
        made: when it was made, in UTC.
        maker: who made it.
        by_token: whether it has a token; links work for every account.
        revoked: when it was revoked; None while it is valid.
        sessions: the number of its sessions.
    """

    name: str
    role: Role
    made: str
    maker: str
    by_token: bool
    revoked: str | None = None
    sessions: int = 0


def digest_of(secret: str) -> bytes:
    """The digest of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def new_secret(prefix: str = "") -> str:
    """192 random bits as text."""
    return prefix + base64.urlsafe_b64encode(secrets.token_bytes(24)).decode("ascii")


def check_name(name: str) -> str:
    """Check the name of an account; ParamsError if it is not valid."""
    if not _NAME.fullmatch(name):
        raise ParamsError(f"the name of an account must match {_NAME.pattern}, got {show(name)}")
    return name


def add(
    connection: sqlite3.Connection, name: str, role: Role, now: datetime, maker: str, token: bool
) -> str | None:
    """Make an account; returns its token, if it gets one, this once.

    Raises:
        ParamsError: a name that is not valid, or is or was that of another account.
    """
    check_name(name)
    if connection.execute("SELECT 1 FROM accounts WHERE name=?", (name,)).fetchone():
        raise ParamsError(f"there is or was an account {name}; names are not used again")
    secret = new_secret(TOKEN_PREFIX) if token else None
    digest = None if secret is None else digest_of(secret)
    connection.execute(
        "INSERT INTO accounts VALUES (?, ?, ?, ?, ?, NULL)",
        (name, role.value, digest, text_of(now), maker),
    )
    return secret


def ever_made(connection: sqlite3.Connection) -> frozenset[Role]:
    """The roles of all accounts, also of revoked ones."""
    return frozenset(Role(role) for (role,) in connection.execute("SELECT role FROM accounts"))


def check_grant(connection: sqlite3.Connection, granter: Role | None, role: Role) -> None:
    """Raise ParamsError unless a granter may give a role: its own, or one that no account had.

    Args:
        connection: the database, in the transaction that gives it.
        granter: the role of the visitor; None for the owner of the data folder.
        role: the role to give.
    """
    if granter is not None and role not in granter.held and role in ever_made(connection):
        raise ParamsError(
            f"{granter.article} cannot make or enter an account of {role.article}: "
            f"{role.plural.lower()} can, and `rappor access` on the machine"
        )


def every(connection: sqlite3.Connection, now: datetime) -> list[Account]:
    """All accounts, valid ones first, with the number of their sessions."""
    rows = connection.execute(
        "SELECT name, role, made, maker, accounts.digest IS NOT NULL, revoked, "  # noqa: S608 - our own names
        f"(SELECT count(*) FROM sessions WHERE account=name AND NOT ({_OVER})) FROM accounts "
        "ORDER BY revoked IS NOT NULL, name",
        _over(now),
    )
    return [
        Account(name, Role(role), made, maker, bool(token), revoked, sessions)
        for name, role, made, maker, token, revoked, sessions in rows
    ]


def role_of_account(connection: sqlite3.Connection, name: str) -> Role | None:
    """The role of a valid account; None if there is none."""
    row = connection.execute(
        "SELECT role FROM accounts WHERE name=? AND revoked IS NULL", (name,)
    ).fetchone()
    return None if row is None else Role(row[0])


def revoke(connection: sqlite3.Connection, name: str, now: datetime) -> None:
    """End an account, its token, links and sessions; ParamsError if there is none."""
    changed = connection.execute(
        "UPDATE accounts SET revoked=?, digest=NULL WHERE name=? AND revoked IS NULL",
        (text_of(now), name),
    )
    if not changed.rowcount:
        raise ParamsError(f"there is no account {show(name)} to revoke")
    connection.execute("DELETE FROM sessions WHERE account=?", (name,))
    connection.execute("DELETE FROM links WHERE account=?", (name,))


def by_token(connection: sqlite3.Connection, token: str) -> str | None:
    """The name of the account whose token this is, or None."""
    row = connection.execute(
        "SELECT name FROM accounts WHERE digest=? AND revoked IS NULL", (digest_of(token),)
    ).fetchone()
    return None if row is None else str(row[0])


def add_link(connection: sqlite3.Connection, name: str, now: datetime) -> str:
    """Make a one-time link for an account, valid for 15 minutes; returns its secret."""
    if role_of_account(connection, name) is None:
        raise ParamsError(f"there is no account {show(name)}")
    secret = new_secret()
    expires = int((now + LINK_LIFE).timestamp())
    connection.execute(
        "INSERT INTO links VALUES (?, ?, ?, NULL)", (digest_of(secret), name, expires)
    )
    return secret


def look_link(connection: sqlite3.Connection, secret: str, now: datetime) -> str | None:
    """The account of a link that is valid; the link stays unused."""
    row = connection.execute(
        "SELECT account FROM links WHERE digest=? AND used IS NULL AND expires > ? "
        "AND expires <= ?",
        (digest_of(secret), int(now.timestamp()), _last_end(now)),
    ).fetchone()
    return None if row is None else str(row[0])


def use_link(connection: sqlite3.Connection, secret: str, now: datetime) -> str | None:
    """Use a link: the name of its account the first time, None after that."""
    name = look_link(connection, secret, now)
    if name is not None:
        connection.execute(
            "UPDATE links SET used=? WHERE digest=?", (text_of(now), digest_of(secret))
        )
    return name


def begin(connection: sqlite3.Connection, name: str, now: datetime) -> str:
    """Start a session of an account; returns the secret for its cookie."""
    forget_old(connection, now)
    secret = new_secret()
    moment = int(now.timestamp())
    connection.execute(
        "INSERT INTO sessions VALUES (?, ?, ?, ?)", (digest_of(secret), name, moment, moment)
    )
    return secret


def find(connection: sqlite3.Connection, secret: str, now: datetime) -> tuple[str, Role, bool]:
    """The account and role of a session, and whether its last use should be saved.

    Raises:
        LookupError: no session, or one that has ended.
    """
    row = connection.execute(
        "SELECT name, role, seen FROM sessions JOIN accounts ON account = name "  # noqa: S608 - our own names
        f"WHERE sessions.digest=? AND revoked IS NULL AND NOT ({_OVER})",
        (digest_of(secret), *_over(now)),
    ).fetchone()
    if row is None:
        raise LookupError("no such session")
    return str(row[0]), Role(row[1]), int(now.timestamp()) - row[2] >= _TOUCH_SECONDS


def _over(now: datetime) -> tuple[int, int, int]:
    moment = int(now.timestamp())
    idle, life = (int(span.total_seconds()) for span in (SESSION_IDLE, SESSION_LIFE))
    return moment - idle, moment - life, moment + _AHEAD_SECONDS


def _last_end(now: datetime) -> int:
    """When a link made now expires at the latest, by a clock that is ahead."""
    return int((now + LINK_LIFE).timestamp()) + _AHEAD_SECONDS


def touch(connection: sqlite3.Connection, secret: str, now: datetime) -> None:
    """Save that a session was used."""
    connection.execute(
        "UPDATE sessions SET seen=? WHERE digest=?", (int(now.timestamp()), digest_of(secret))
    )


def end(connection: sqlite3.Connection, secret: str) -> None:
    """End a session."""
    connection.execute("DELETE FROM sessions WHERE digest=?", (digest_of(secret),))


def forget_old(connection: sqlite3.Connection, now: datetime) -> None:
    """Delete sessions and links that have ended."""
    connection.execute(f"DELETE FROM sessions WHERE {_OVER}", _over(now))  # noqa: S608 - our own names
    connection.execute(
        "DELETE FROM links WHERE expires < ? OR expires > ?",
        (int((now - SESSION_LIFE).timestamp()), _last_end(now)),
    )
