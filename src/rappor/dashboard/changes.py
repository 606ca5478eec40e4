"""Whether files changed: a stamp that is another after every commit of a store."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

Stamp = tuple[tuple[int, int, int] | None, ...]


def stamp_of(paths: Iterable[Path]) -> Stamp:
    """Inode, size and time of each file, None where it is missing.

    A store's log grows with each commit and is emptied when it is folded into the file, so file and
    log together differ after every commit; a restored store has another inode.
    """
    return tuple(_look(path) for path in paths)


def store_stamp(file: Path) -> Stamp:
    """The stamp of a store: its file and its log."""
    return stamp_of((file, file.with_name(f"{file.name}-wal")))


def folder_stamp(folder: Path) -> Stamp:
    """The stamp of the *.toml files in a folder; empty where there is none."""
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix == ".toml")
    except OSError:
        return ()
    return stamp_of(files)


def _look(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
