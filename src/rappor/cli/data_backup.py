"""What `rappor backup` and `rappor restore` share: the files, and what is said about them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rappor.cli.arguments import UsageError

if TYPE_CHECKING:
    from rappor.store import Store
    from rappor.store.archive import ArchivedFile, Companion


def write(store: Store, data: str, target: Path) -> list[ArchivedFile]:
    """Write a backup of a data folder."""
    from rappor.store.archive import write_archive

    return write_archive(store, _path(data), target, _companions())


def restore(backup: str, data: str, *, store_only: bool) -> list[ArchivedFile]:
    """Restore a backup into a data folder."""
    from rappor.store.archive import restore_archive

    return restore_archive(_path(backup), _path(data), _companions(), store_only=store_only)


def make_folder(output: str) -> None:
    """Make the folder of a backup, for its owner only."""
    _path(output).parent.mkdir(mode=0o700, parents=True, exist_ok=True)


def contents(files: Sequence[ArchivedFile]) -> str:
    """One line about what a backup carries besides the store."""
    from rappor.dashboard.settings import STATE

    for file in files:
        if file.name == STATE.name:
            figures = ", ".join(
                f"{number:,} {noun.removesuffix('s') if number == 1 else noun}"
                for noun, number in file.figures.items()
            )
            return f"dashboard: {figures}; people log in again, with their tokens or a new link"
    return "dashboard: no file of it, so no accounts and candidate lists"


def files_document(files: Sequence[ArchivedFile]) -> dict[str, Any]:
    """The files for JSON."""
    return {
        "files": {file.name: {"bytes": file.size, **file.figures} for file in files},
    }


def _companions() -> list[Companion]:
    from rappor.dashboard.settings import STATE
    from rappor.store.archive import RELEASED

    return [STATE, RELEASED]


def _path(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise UsageError(f"{text}: no such home directory") from None
