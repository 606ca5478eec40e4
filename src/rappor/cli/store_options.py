"""What the verbs about a data folder share: its option, who asks, which collection is meant."""

from __future__ import annotations

import argparse
import getpass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rappor.checks import show
from rappor.cli.arguments import UsageError, count, need_analysis
from rappor.collection import Collection, Registry, days_of
from rappor.errors import ParamsError, StoreError

if TYPE_CHECKING:
    from rappor.store import Store


def verb(verbs: Any, name: str, about: str, description: str, example: str) -> Any:
    """The parser of a verb with its example."""
    return verbs.add_parser(
        name, help=about, description=description, epilog=f"Example: {example}", allow_abbrev=False
    )


def add_data(parser: argparse.ArgumentParser) -> None:
    """--data."""
    parser.add_argument(
        "--data", required=True, metavar="DIR", help="the data folder, as `rappor collect` has it"
    )


def add_version(parser: argparse.ArgumentParser) -> None:
    """--version of a collection."""
    parser.add_argument(
        "--version", type=count, metavar="N", help="the collection's version (default: the newest)"
    )


def open_data(
    name: str, *, read_only: bool = True, create: bool = False, accept_loss: str | None = None
) -> Store:
    """The store in a data folder, which must be there unless it may be made.

    A misspelt folder must not become an empty store, about which everything is well.
    """
    need_analysis("store", "numpy")
    from rappor.store import open_store
    from rappor.store.open import FILE_NAME

    file = Path(name).expanduser() / FILE_NAME
    if not read_only and not create and "://" not in name and not file.is_file():
        raise StoreError(f"{file}: there is no store")
    return open_store(name, read_only=read_only, accept_loss=accept_loss)


def actor() -> str:
    """Who asks, for the audit log: the name that the system knows the user by."""
    try:
        return f"user {getpass.getuser()}"
    except (OSError, KeyError, ImportError):
        return "user unknown"


def today() -> date:
    """The day in UTC."""
    return datetime.now(UTC).date()


def saved(store: Store) -> Registry:
    """The definitions in a store."""
    return Registry(Collection.from_toml(each.toml) for each in store.definitions())


def definition(store: Store, name: str, version: int | None) -> Collection:
    """The collection that is meant: the newest version in the store if none is named."""
    registry = saved(store)
    if name not in registry:
        known = ", ".join(dict.fromkeys(each.name for each in registry)) or "none yet"
        raise ParamsError(f"there is no collection {show(name)} in the store; there is: {known}")
    return registry.get(name, version)


def day_range(text: str) -> tuple[date, date]:
    """The first and the last day of a period, or of FROM..TO."""
    first, dots, last = text.partition("..")
    start, end = days_of(first)[0], days_of(last if dots else first)[1]
    if end < start:
        raise UsageError(f"--period {text} ends before it begins")
    return start, end


def new_file(name: str) -> Path:
    """A file to be written: its folder exists, and it is no folder itself."""
    try:
        path = Path(name).expanduser()
    except RuntimeError:
        raise UsageError(f"{name}: no such home directory") from None
    path.parent.stat()  # FileNotFoundError says which folder is missing
    if path.is_dir():
        raise IsADirectoryError(21, "Is a directory", name)
    return path
