"""Identity: the client's secret, drawn once and kept permanently.

Every B' and every cohort is derived from it. If it is missing after its first use, or damaged, the
client stops: a new secret would draw a second B' for every value, at the cost of another ε∞ (§6).
"""

from __future__ import annotations

from rappor.client.folder import Disk, seal, unseal
from rappor.client.outbox import OUTBOX, SENT
from rappor.client.problems import Stopped
from rappor.mechanism.entropy import derive_key, new_secret

SECRET, USED, LEDGER, ONCE = "secret", "used", "ledger", "once"
MIN_SECRET_BYTES = 16


def was_used(disk: Disk) -> bool:
    """Whether a report was ever made here: a file exists that only reports leave."""
    traces = (OUTBOX, SENT, ONCE)
    return disk.read(USED) is not None or any(disk.names(folder) for folder in traces)


def load_secret(disk: Disk, account_secret: bytes | None, *, first: bool = True) -> bytes:
    """The secret, drawn and stored on first use. Call it while holding the lock.

    Args:
        disk: the directory.
        account_secret: the account's secret, which no file holds; None if the client has its own.
        first: whether this can be the first use; False if this process has used a secret before.

    Raises:
        Stopped: it is missing after first use, damaged, or not the secret of this directory.
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
    """Record durably, before the first report, which secret this directory uses."""
    if disk.read(USED) is None:
        disk.create(USED, _mark(secret))


def check_of(secret: bytes) -> str:
    """A 128-bit check value that tells secrets apart without revealing them."""
    return derive_key(secret, b"client check")[:16].hex()


def _mark(secret: bytes) -> bytes:
    return seal("used", check_of(secret).encode("ascii") + b"\n")
