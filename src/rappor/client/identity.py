"""Identity: the client's secret, drawn once, kept for ever, and refused when damaged (R6, R58).

Every B' and cohort follows from it. One that is missing after its first use, or damaged, stops the
client: a new one would draw every B' anew, and each new draw costs another ε∞.
"""

from __future__ import annotations

from rappor.client.folder import Disk
from rappor.client.outbox import OUTBOX, SENT
from rappor.client.problems import Stopped
from rappor.client.sealed import seal, unseal
from rappor.mechanism.entropy import derive_key, new_secret

SECRET, USED, LEDGER, ONCE = "secret", "used", "ledger", "once"
MIN_SECRET_BYTES = 16


def was_used(disk: Disk) -> bool:
    """Whether a report was ever made here: some file is there that is written only then."""
    traces = (OUTBOX, SENT, ONCE)
    return disk.read(USED) is not None or any(disk.names(folder) for folder in traces)


def load_secret(disk: Disk, account_secret: bytes | None, *, first: bool = True) -> bytes:
    """The secret; drawn and made durable if this is the first time. Call it under the lock.

    Args:
        disk: the directory.
        account_secret: the account's, which no file holds.
        first: whether it may be the first time; False where this process has used one.

    Raises:
        Stopped: missing after first use, damaged, or not the one that the directory belongs to.
    """
    secret = account_secret if account_secret is not None else _own(disk, first)
    mark = disk.read(USED)
    if mark is not None and mark != _mark(secret):
        raise Stopped("marker-damaged" if unseal("used", mark) is None else "secret-changed")
    return secret


def _own(disk: Disk, first: bool) -> bytes:
    data = disk.read(SECRET)
    if data is None:
        if not first or was_used(disk) or disk.read(LEDGER) is not None:
            raise Stopped("secret-missing")
        disk.create(SECRET, seal("secret", new_secret().hex().encode("ascii") + b"\n"))
        data = disk.read(SECRET) or b""
    return parse_secret(data)


def parse_secret(data: bytes) -> bytes:
    """The secret in a file's bytes, or Stopped."""
    body = unseal("secret", data)
    try:
        secret = bytes.fromhex((body or b"").decode("ascii"))
    except ValueError:
        secret = b""
    if len(secret) < MIN_SECRET_BYTES:
        raise Stopped("secret-damaged")
    return secret


def mark_used(disk: Disk, secret: bytes) -> None:
    """Write durably, before the first report, that this secret is the one in use."""
    if disk.read(USED) is None:
        disk.create(USED, _mark(secret))


def check_of(secret: bytes) -> str:
    """What tells secrets apart and gives none away: 128 bits of a key derived for this alone."""
    return derive_key(secret, b"client check")[:16].hex()


def _mark(secret: bytes) -> bytes:
    return seal("used", check_of(secret).encode("ascii") + b"\n")
