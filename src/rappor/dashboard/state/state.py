"""The dashboard's state in DATA/dashboard.sqlite; nothing of it is in the store."""

from __future__ import annotations

from collections.abc import Iterable, Set
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from rappor.dashboard.auth.roles import Role
from rappor.dashboard.state import accounts, saved
from rappor.dashboard.state.accounts import Account
from rappor.dashboard.state.database import Clock, Database, text_of, utc_now
from rappor.dashboard.state.saved import CandidateVersion, SavedJob, SavedResult
from rappor.decoding.candidate_files import read_strings
from rappor.decoding.saved_candidates import CandidateList, read_list
from rappor.errors import ParamsError, RapporError, StoreError
from rappor.store import AuditEntry

FIRST_LIST = "{name}.candidates.txt"  # next to a collection's definition: version 1 of its list
FROM_FILE = "file"
DECODE = "decode"
_TOUCH_PATIENCE = 0.2  # seconds that a page waits to save that a session was used
_TOUCH_AGAIN = timedelta(minutes=1)  # before it is tried again after an error


class DashboardState:
    """Accounts, links, sessions, lists of candidates, results, jobs, and the audit log.

    Every method is one transaction. Thread-safe.
    """

    def __init__(self, path: Path, collections: Path | None = None, now: Clock = utc_now) -> None:
        """Open the file, or create it; the folder `collections` may hold first lists."""
        self._address: str | None = None
        self._file = Database(path, self._tell_address)
        self._collections, self._now = collections, now
        self._untouched: datetime | None = None

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    # Accounts, links, sessions.

    def add_account(
        self,
        name: str,
        role: Role,
        actor: str,
        *,
        token: bool = True,
        granter: Role | None = None,
    ) -> str | None:
        """Make an account; returns its token, of which only the digest is stored.

        Args:
            name: the account.
            role: what it may do.
            actor: who asks.
            token: whether the account gets a token.
            granter: the role of the actor, which limits the roles to give; None for the owner of
                the data folder.

        Raises:
            ParamsError: a name that is taken or not valid, or a role that the granter cannot give.
        """
        with self._file.writing() as file:
            accounts.check_grant(file, granter, role)
            secret = accounts.add(file, name, role, self._now(), actor, token)
            self._note(file, actor, "access-new", f"{name}: {role}")
        return secret

    def grantable(self, granter: Role) -> list[Role]:
        """The roles that a granter can give now."""
        with self._file.reading() as file:
            made = accounts.ever_made(file)
        return [role for role in Role if role in granter.held or role not in made]

    def accounts(self) -> list[Account]:
        """All accounts, valid ones first."""
        with self._file.reading() as file:
            return accounts.every(file, self._now())

    def revoke(self, name: str, actor: str, *, granter: Role | None = None) -> None:
        """End an account with its token, links and sessions, at once.

        Privacy officers watch the others, so only they can revoke accounts of their role, and the
        owner of the data folder.
        """
        with self._file.writing() as file:
            known = accounts.role_of_account(file, name)
            if granter is not None and known is Role.OFFICER and granter is not Role.OFFICER:
                raise ParamsError(
                    f"{granter.article} cannot revoke {Role.OFFICER.article}: another privacy "
                    "officer can, and `rappor access` on the machine"
                )
            accounts.revoke(file, name, self._now())
            self._note(file, actor, "access-revoke", name)

    def new_link(
        self, name: str, actor: str, role: Role | None = None, *, granter: Role | None = None
    ) -> str:
        """Make a one-time login link, valid for 15 minutes; returns its secret.

        Args:
            name: the account; made without a token if it is missing and a role is given.
            actor: who asks.
            role: its role; must be the role of an existing account.
            granter: the role of the actor, which limits links as it limits roles; None for the
                owner of the data folder.
        """
        with self._file.writing() as file:
            known = accounts.role_of_account(file, name)
            wanted = known or role
            if wanted is not None:
                accounts.check_grant(file, granter, wanted)
            if known is None and role is not None:
                accounts.add(file, name, role, self._now(), actor, False)
                self._note(file, actor, "access-new", f"{name}: {role}")
            elif known is not None and role not in (None, known):
                raise ParamsError(f"{name} is {known.article}, not {role and role.article}")
            secret = accounts.add_link(file, name, self._now())
            self._note(file, actor, "access-link", name)
        return secret

    def look_link(self, secret: str) -> tuple[str, Role] | None:
        """The account and role of a link that is valid."""
        with self._file.reading() as file:
            name = accounts.look_link(file, secret, self._now())
            role = None if name is None else accounts.role_of_account(file, name)
            return None if name is None or role is None else (name, role)

    def log_in(self, *, token: str = "", link: str = "") -> str | None:
        """Start a session; returns its secret, or None if token or link is not valid."""
        with self._file.writing() as file:
            now = self._now()
            name = accounts.use_link(file, link, now) if link else accounts.by_token(file, token)
            role = None if name is None else accounts.role_of_account(file, name)
            if name is None or role is None:
                return None
            self._note(file, f"{role} {name}", "login", "by one-time link" if link else "by token")
            return accounts.begin(file, name, now)

    def session(self, secret: str) -> tuple[str, Role] | None:
        """The account and role of a session, or None."""
        now = self._now()
        with self._file.reading() as file:
            try:
                name, role, stale = accounts.find(file, secret, now)
            except LookupError:
                return None
        if stale:
            self._touch(secret, now)
        return name, role

    def _touch(self, secret: str, now: datetime) -> None:
        """Save that a session was used; a full disk must not keep visitors from reading.

        A use that is not saved does not extend the session. It is tried once a minute.
        """
        failed = self._untouched
        if failed is not None and abs(now - failed) < _TOUCH_AGAIN:
            return
        try:
            with self._file.writing(_TOUCH_PATIENCE) as file:
                accounts.touch(file, secret, now)
            self._untouched = None
        except StoreError:
            self._untouched = now

    def log_out(self, secret: str) -> None:
        """End a session."""
        with self._file.writing() as file:
            accounts.end(file, secret)

    @property
    def address(self) -> str | None:
        """The last address of this folder's dashboard; None if it never ran."""
        with self._file.reading() as file:
            row = file.execute("SELECT value FROM facts WHERE name='address'").fetchone()
        return None if row is None else str(row[0])

    @address.setter
    def address(self, url: str) -> None:
        self._address = url
        with self._file.writing() as file:
            self._tell_address(file)

    def _tell_address(self, file: Any) -> None:
        """Save the address of this process, also in a replaced file."""
        if self._address is not None:
            file.execute("INSERT OR REPLACE INTO facts VALUES ('address', ?)", (self._address,))

    # Candidates.

    def save_candidates(self, collection: str, strings: Iterable[str], actor: str) -> int:
        """Save a list as a collection's next version, and return its number."""
        self._adopt(collection)
        with self._file.writing() as file:
            version = saved.save_list(file, collection, strings, text_of(self._now()), actor)
            self._note(file, actor, "candidates", f"{collection}: version {version}")
        return version

    def candidates(self, collection: str, version: int | None = None) -> CandidateList | None:
        """A version of a list, by default the newest; None if there is none."""
        self._adopt(collection)
        with self._file.reading() as file:
            return read_list(file, collection, version)

    def candidate_versions(self, collection: str) -> list[CandidateVersion]:
        """All versions of a collection's list, newest first."""
        self._adopt(collection)
        with self._file.reading() as file:
            return saved.list_versions(file, collection)

    def candidate_sizes(self) -> dict[str, int]:
        """The number of candidates in the newest list of each collection."""
        with self._file.reading() as file:
            return saved.list_sizes(file)

    def save_first_lists(self) -> None:
        """Save every NAME.candidates.txt that can be read, for collections without a list."""
        if self._collections is None:
            return
        for path in sorted(self._collections.glob(FIRST_LIST.format(name="*"))):
            with suppress(RapporError, OSError):  # the page says what is wrong
                self._adopt(path.name.removesuffix(FIRST_LIST.format(name="")))

    def _adopt(self, collection: str) -> None:
        """Save NAME.candidates.txt as version 1 if the collection has no list yet."""
        if self._collections is None:
            return
        with self._file.reading() as file:
            if saved.list_versions(file, collection):
                return
        path = self._collections / FIRST_LIST.format(name=collection)
        if not path.is_file():
            return
        strings = list(dict.fromkeys(read_strings(path)[0]))
        with self._file.writing() as file:
            if strings and not saved.list_versions(file, collection):
                saved.save_list(file, collection, strings, text_of(self._now()), FROM_FILE)

    # Results and jobs.

    def save_result(self, key: str, kind: str, meta: dict[str, Any], table: bytes | None) -> None:
        """Save a result; "collection" in `meta` names its collection."""
        with self._file.writing() as file:
            saved.save_result(file, key, kind, meta, table, text_of(self._now()))

    def keep_results_of(self, stored: Set[tuple[str, int]]) -> None:
        """Delete results of versions whose counts retention removed from the store.

        Args:
            stored: names and versions of collections that have counts.
        """
        with self._file.reading() as file:
            gone = saved.results_not_of(file, stored)
        if gone:
            with self._file.writing() as file:
                saved.delete_results(file, gone)

    def result(self, key: str) -> SavedResult | None:
        """A result by its key, or None."""
        with self._file.reading() as file:
            return saved.read_result(file, key)

    def latest_result(self, collection: str, kind: str = DECODE) -> SavedResult | None:
        """The newest result of a collection, or None."""
        with self._file.reading() as file:
            return saved.latest_result(file, collection, kind)

    def latest_metas(self, kind: str = DECODE) -> dict[str, dict[str, Any]]:
        """The facts of the result that each collection's page shows first, if there is one."""
        with self._file.reading() as file:
            return saved.latest_metas(file, kind)

    def save_job(
        self, number: str, kind: str, key: str, status: str, document: dict[str, Any]
    ) -> None:
        """Save a job."""
        made = text_of(self._now())
        with self._file.writing() as file:
            saved.save_job(file, SavedJob(number, kind, key, status, document, made))

    def jobs(self) -> list[SavedJob]:
        """All saved jobs, newest first."""
        with self._file.reading() as file:
            return saved.read_jobs(file)

    # The audit log.

    def audit(self, actor: str, action: str, detail: str) -> None:
        """Add an entry to the audit log."""
        with self._file.writing() as file:
            self._note(file, actor, action, detail)

    def audit_log(self) -> list[AuditEntry]:
        """The audit log, oldest first."""
        with self._file.reading() as file:
            rows = file.execute("SELECT at, actor, action, detail FROM audit ORDER BY id")
            return [AuditEntry(*row) for row in rows]

    def _note(self, file: Any, actor: str, action: str, detail: str) -> None:
        file.execute(
            "INSERT INTO audit (at, actor, action, detail) VALUES (?, ?, ?, ?)",
            (text_of(self._now()), actor, action, detail),
        )
