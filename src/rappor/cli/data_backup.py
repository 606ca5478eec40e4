"""What `rappor backup` and `rappor restore` share: the files, and what is said about them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rappor.cli.paths import new_target, output_folder, path_of

if TYPE_CHECKING:
    from rappor.store import Store
    from rappor.store.archive import ArchivedFile, Companion


def write(store: Store, data: str | None, target: Path) -> list[ArchivedFile]:
    """Write a backup of a store, and of the data folder if there is one."""
    from rappor.store.archive import write_archive

    folder = None if data is None else path_of(data)
    return write_archive(store, folder, target, _companions())


def restore(
    backup: str, data: str | None, url: str | None, *, store_only: bool
) -> list[ArchivedFile]:
    """Restore a backup into a data folder, or its store into a database."""
    from rappor.store.archive import restore_archive

    folder = None if data is None else output_folder(data)
    return restore_archive(path_of(backup), folder, _companions(), store_only=store_only, url=url)


def target_of_backup(output: str, *, force: bool) -> Path:
    """The file to write; if it exists, ParamsError unless `force`. Its folder may be missing."""
    path = path_of(output)
    if path.parent.exists():
        return new_target(output, force=force)
    output_folder(str(path.parent))
    return path


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
