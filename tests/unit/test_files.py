"""Atomic writes: a file is the old one or the new one."""

import os
import stat
from pathlib import Path

import pytest

from rappor.files import replacing, write_bytes, write_text


def test_a_new_file_holds_exactly_what_was_written(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "ä\r\n")
    write_bytes(tmp_path / "b.bin", b"\0\n")
    assert (tmp_path / "a.txt").read_bytes() == "ä\r\n".encode()
    assert (tmp_path / "b.bin").read_bytes() == b"\0\n"


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, error: BaseException
) -> None:
    target = tmp_path / "a.csv"
    target.write_text("old")

    def write_half() -> None:
        with replacing(target) as draft:
            draft.write_text("half of the n")
            raise error

    with pytest.raises(type(error)):
        write_half()
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.csv"]


def test_a_draft_keeps_the_ending_by_which_libraries_choose_a_format(tmp_path: Path) -> None:
    with replacing(tmp_path / "plot.svg") as draft:
        assert draft.suffix == ".svg"
        draft.touch()


def test_a_private_file_is_never_readable_by_others(tmp_path: Path) -> None:
    target = tmp_path / "keys.json"
    with replacing(target, private=True) as draft:
        assert stat.S_IMODE(draft.stat().st_mode) == 0o600
        draft.write_text("{}")
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_text(pipe, "through")
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_an_error_names_the_file_that_was_to_be_written(tmp_path: Path) -> None:
    def write() -> None:
        with replacing(tmp_path / "a.csv"):
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left on device") as raised:
        write()
    assert raised.value.filename == str(tmp_path / "a.csv")

    def create() -> None:
        with replacing(tmp_path / "missing" / "a.csv") as draft:
            draft.touch()

    with pytest.raises(FileNotFoundError) as missing:
        create()
    assert missing.value.filename == str(tmp_path / "missing" / "a.csv")


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_a_file_keeps_its_permissions(tmp_path: Path, mode: int) -> None:
    target = tmp_path / "results.csv"
    target.write_text("old")
    target.chmod(mode)
    with replacing(target) as draft:
        assert stat.S_IMODE(draft.stat().st_mode) == 0o600
        draft.write_text("new")
    assert (target.read_text(), stat.S_IMODE(target.stat().st_mode)) == ("new", mode)


def test_a_private_file_stays_private_when_its_writer_replaces_it_too(tmp_path: Path) -> None:
    target = tmp_path / "reports.csv"
    with replacing(target, private=True) as draft:
        write_text(draft, "bits")
    assert (target.read_text(), stat.S_IMODE(target.stat().st_mode)) == ("bits", 0o600)


def test_the_draft_of_a_killed_process_is_no_obstacle(tmp_path: Path) -> None:
    target = tmp_path / "a.csv"
    for text in ("old", "new"):
        (tmp_path / f".a.{os.getpid()}.csv").write_text("half")
        write_text(target, text)
    assert target.read_text() == "new"
    assert os.listdir(tmp_path) == ["a.csv"]


def test_a_disk_that_refuses_everything_does_not_change_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, missing_ok: bool = False) -> None:
        raise OSError(30, "Read-only file system", str(path))

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(OSError, match="Read-only") as raised, replacing(tmp_path / "a") as draft:
        raise OSError(30, "Read-only file system", str(draft))
    assert raised.value.filename == str(tmp_path / "a")
