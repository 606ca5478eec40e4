"""A client's files: secret, ledger, outbox; what damage does, and what a crash leaves."""

import datetime
import errno
import os
import stat
from pathlib import Path

import pytest

from rappor.client.accounts import Ledger
from rappor.client.charging import Caps, decide
from rappor.client.folder import Busy, Folder, seal, unseal
from rappor.client.identity import load_secret, mark_used
from rappor.client.ledger_file import fingerprints, load_ledger, parse_ledger, save_ledger
from rappor.client.outbox import Outbox
from rappor.client.problems import Stopped
from rappor.client.sender import Sender
from rappor.wire import Batch
from support.client import (
    LIMIT,
    MONDAY,
    FakeClock,
    FakeTransport,
    MemoryDisk,
    homepage,
    recorder_on,
)

SECRET = bytes(range(32))


def some_batch(token: int = 0, period: str = "2026-11-16") -> Batch:
    return Batch(b"t" * 15 + bytes([token]), "homepage", 1, period, (), 8, b"\1\0", b"\5")


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "client")


# Folder.


def test_files_and_folders_are_the_owners_alone(folder: Folder) -> None:
    folder.create("secret", b"x")
    folder.replace("outbox/1.batch", b"y")
    for path in (folder.path, folder.path / "outbox"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    for path in (folder.path / "secret", folder.path / "outbox/1.batch"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_create_never_overwrites_and_replace_does(folder: Folder) -> None:
    folder.create("secret", b"first")
    with pytest.raises(FileExistsError):
        folder.create("secret", b"second")
    assert folder.read("secret") == b"first"
    folder.replace("secret", b"third")
    assert folder.read("secret") == b"third"
    assert os.listdir(folder.path) == ["secret"]


def test_unfinished_files_are_invisible_and_swept(folder: Folder) -> None:
    folder.replace("outbox/1.batch", b"y")
    torn = folder.path / "outbox/.new-0011"
    torn.write_bytes(b"half")
    assert folder.names("outbox") == ["outbox/1.batch"]
    folder.sweep()
    assert torn.exists()  # it may be in another process's hands
    folder.sweep(older_than=-1)
    assert not torn.exists()


def test_a_lock_excludes_and_is_released(folder: Folder) -> None:
    with folder.lock("lock", 0.0), pytest.raises(Busy), Folder(folder.path).lock("lock", 0.02):
        pass
    with folder.lock("lock", 0.0):
        pass


def test_a_failed_write_leaves_the_old_file_and_no_other(folder: Folder) -> None:
    import resource

    folder.replace("ledger", b"old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(OSError, match=r".*") as caught:
            folder.replace("ledger", b"n" * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.errno == errno.EFBIG
    assert folder.read("ledger") == b"old"
    assert os.listdir(folder.path) == ["ledger"]


def test_any_bit_that_flips_and_any_cut_breaks_the_seal() -> None:
    whole = seal("ledger", b'{"a":1}')
    assert unseal("ledger", whole) == b'{"a":1}'
    assert unseal("secret", whole) is None
    for cut in range(len(whole)):
        assert unseal("ledger", whole[:cut]) is None
    for bit in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        assert unseal("ledger", bytes(flipped)) is None


# Secret.


def test_a_secret_is_drawn_once_and_kept(folder: Folder) -> None:
    first = load_secret(folder, None)
    assert len(first) == 32
    assert load_secret(Folder(folder.path), None) == first
    assert stat.S_IMODE((folder.path / "secret").stat().st_mode) == 0o600


@pytest.mark.parametrize("trace", ["used", "ledger"])
def test_a_secret_that_is_gone_after_use_is_not_drawn_again(trace: str) -> None:
    disk = MemoryDisk()
    secret = load_secret(disk, None)
    save_ledger(disk, Ledger("x")) if trace == "ledger" else mark_used(disk, secret)
    disk.remove("secret")
    with pytest.raises(Stopped) as caught:
        load_secret(disk, None)
    assert caught.value.code == "secret-missing"
    assert disk.read("secret") is None


def test_every_bit_flip_and_every_cut_of_the_secret_is_refused() -> None:
    disk = MemoryDisk()
    load_secret(disk, None)
    whole = disk.files["secret"]
    damaged = [whole[:cut] for cut in range(len(whole))]
    for bit in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        damaged.append(bytes(flipped))
    for each in damaged:
        disk.files["secret"] = each
        with pytest.raises(Stopped) as caught:
            load_secret(disk, None)
        assert caught.value.code == "secret-damaged"
        assert disk.files["secret"] == each


def test_another_accounts_secret_is_refused() -> None:
    disk = MemoryDisk()
    mark_used(disk, load_secret(disk, SECRET))
    assert load_secret(disk, SECRET) == SECRET
    for other in (b"another account!", None):
        with pytest.raises(Stopped) as caught:
            load_secret(disk, other)
        assert caught.value.code in ("secret-changed", "secret-missing")
    disk.files["used"] = disk.files["used"][:-1]
    with pytest.raises(Stopped) as caught:
        load_secret(disk, SECRET)
    assert caught.value.code == "marker-damaged"


# Ledger.


def charged() -> Ledger:
    ledger = load_ledger(MemoryDisk(), SECRET)
    for day, value in enumerate(("aa", "bb")):
        when = MONDAY + datetime.timedelta(days=day)
        _, ledger = decide(ledger, homepage(null_reports=True, group="g"), when, value * 16, Caps())
    return ledger


def test_a_ledger_reads_back_as_it_was_written() -> None:
    disk, ledger = MemoryDisk(), charged()
    save_ledger(disk, ledger)
    assert load_ledger(disk, SECRET) == ledger
    assert ledger.epsilon() > 0


def test_a_ledger_keeps_fingerprints_and_nothing_else_about_values() -> None:
    clock, disk = FakeClock(), MemoryDisk()
    recorder = recorder_on(disk, clock, homepage())
    recorder.record("homepage", "www.example.com", clock.now)
    everything = b"\n".join(disk.files.values())
    assert b"example" not in everything
    secret = load_secret(disk, None)
    marks = fingerprints(secret, "homepage", homepage().memo_digest)
    (account,) = load_ledger(disk, secret).accounts
    assert list(account.values) == [marks(b"www.example.com")]
    other = fingerprints(bytes(32), "homepage", homepage().memo_digest)
    assert other(b"www.example.com") != marks(b"www.example.com")
    assert fingerprints(secret, "other", homepage().memo_digest)(b"") != marks(b"")


def test_values_are_kept_in_no_order_of_use() -> None:
    values = list(charged().accounts[0].values)
    assert values == sorted(values)


def test_a_damaged_ledger_is_refused_and_left_alone() -> None:
    disk = MemoryDisk()
    save_ledger(disk, charged())
    whole = disk.files["ledger"]
    for place in range(0, len(whole), 7):
        for damaged in (whole[:place], whole[:place] + b"#" + whole[place + 1 :]):
            if damaged != whole:
                with pytest.raises(Stopped) as caught:
                    parse_ledger(damaged)
                assert caught.value.code == "ledger-damaged"
    for body in (b"{}", b"[]", b"nonsense", b'{"secret":1}', b"\xff"):
        with pytest.raises(Stopped):
            parse_ledger(seal("ledger", body))


def test_a_ledger_that_is_gone_after_use_is_not_begun_anew() -> None:
    disk = MemoryDisk()
    mark_used(disk, SECRET)
    with pytest.raises(Stopped) as caught:
        load_ledger(disk, SECRET)
    assert caught.value.code == "ledger-missing"


# Outbox.


def test_the_outbox_drops_the_oldest_and_counts_them() -> None:
    outbox = Outbox(MemoryDisk(), limit=3)
    for number in range(5):
        outbox.put(number, some_batch(number))
    kept = [outbox.read(name) for name in outbox.names()]
    assert [each.batch.token[-1] for each in kept if each] == [2, 3, 4]
    assert outbox.counts() == {"dropped: outbox full": 2}


def test_a_damaged_batch_is_dropped_and_counted() -> None:
    disk = MemoryDisk()
    outbox = Outbox(disk)
    outbox.put(1, some_batch())
    (name,) = outbox.names()
    disk.files[name] = disk.files[name][:-1]
    disk.files["outbox/junk"] = b"\0\0\0"
    disk.files["outbox/empty.batch"] = b""
    transport = FakeTransport()
    sender = Sender(disk, FakeClock(), outbox, transport, jitter=0)
    assert sender.send(until=sender._clock.monotonic() + LIMIT, now=True)
    assert (transport.bodies, outbox.names()) == ([], [])
    assert outbox.counts() == {"dropped: damaged": 3}


def test_damaged_counts_start_again_and_nothing_breaks() -> None:
    disk = MemoryDisk()
    outbox = Outbox(disk)
    disk.files["counts"] = b"garbage"
    assert outbox.counts() == {}
    outbox.count("sent")
    assert outbox.counts() == {"sent": 1}
