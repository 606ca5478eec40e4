"""What verbs about a data folder share: --data, the store in it, and its collections."""

from __future__ import annotations

import argparse
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rappor.checks import show
from rappor.cli.arguments import UsageError, count, need_analysis
from rappor.cli.paths import existing_folder, output_folder
from rappor.collection import Collection, Registry, days_of
from rappor.errors import ParamsError

if TYPE_CHECKING:
    from rappor.store import Store


_FOLDER = "data folder"


def verb(verbs: Any, name: str, about: str, description: str, example: str) -> Any:
    """Add a verb with a description and an example."""
    return verbs.add_parser(
        name, help=about, description=description, epilog=f"Example: {example}", allow_abbrev=False
    )


def add_data(parser: argparse.ArgumentParser) -> None:
    """Add --data and --store; `where` says which of them was given."""
    parser.add_argument("--data", metavar="DIR", help="the data folder of the collector")
    add_store(parser)


def add_store(parser: Any, dest: str = "store") -> None:
    """Add --store."""
    parser.add_argument(
        "--store",
        dest=dest,
        metavar="URL",
        type=_store_url,
        help="a PostgreSQL database instead of the data folder, such as "
        "postgresql://rappor@db.example.org/rappor; give the password in PGPASSWORD, a file "
        "~/.pgpass or a service file",
    )


def _store_url(text: str) -> str:
    from rappor.store.url import check_url, is_url, other_secrets

    if not is_url(text):
        raise argparse.ArgumentTypeError("must be a URL, such as postgresql://db.example.org/name")
    check_url(text)
    if secrets := other_secrets(text):
        raise argparse.ArgumentTypeError(
            f"{secrets[0]} must not be in a command; give it in a service file"
        )
    return text


def where(args: argparse.Namespace) -> str:
    """The store that was asked for: the URL of a database, or a data folder."""
    if args.store is None and args.data is None:
        raise UsageError("missing: --data; give the folder, or --store and the URL of a database")
    return str(args.data if args.store is None else args.store)


def analysed(location: str) -> str | Path:
    """The store of a workspace: a URL, or a folder that must have a store."""
    return location if "://" in location else data_folder(location)


def shown(location: str) -> str:
    """The store as messages name it."""
    from rappor.store.url import is_url, public_url

    return public_url(location) if is_url(location) else location


def link_store(args: argparse.Namespace) -> None:
    """Write the URL of the store into the data folder, so that other verbs find it there."""
    from rappor.store.link import write_link

    if args.data is not None:
        write_link(output_folder(args.data), args.store)


def add_version(parser: argparse.ArgumentParser) -> None:
    """Add --version, of a collection."""
    parser.add_argument(
        "--version", type=count, metavar="N", help="version of the collection (default: the newest)"
    )


def open_data(
    name: str, *, read_only: bool = True, create: bool = False, accept_loss: str | None = None
) -> Store:
    """Open the store of a data folder or a database; without `create`, the store must exist.

    A misspelt name must not create an empty store that looks healthy.
    """
    need_analysis("store", "numpy")
    from rappor.store import open_store
    from rappor.store.open import check_database, url_of

    if "://" not in name:
        output_folder(name) if create else data_folder(name)
    url = url_of(name)
    if url is not None and not create:
        check_database(url)
    return open_store(name, read_only=read_only, accept_loss=accept_loss)


def data_folder(name: str) -> Path:
    """A folder that has a store, or ParamsError."""
    from rappor.store.open import has_store

    folder = existing_folder(name, _FOLDER)
    if not has_store(folder):
        raise ParamsError(f"{name}: there is no store in this folder; check the path")
    return folder


def today() -> date:
    """Today in UTC."""
    return datetime.now(UTC).date()


def saved(store: Store) -> Registry:
    """The definitions in a store."""
    return Registry(Collection.from_toml(definition.toml) for definition in store.definitions())


def definition(store: Store, name: str, version: int | None) -> Collection:
    """The collection of a name; by default its newest version in the store."""
    registry = saved(store)
    if name not in registry:
        known = ", ".join(dict.fromkeys(item.name for item in registry)) or "none yet"
        raise ParamsError(f"the store has no collection {show(name)}; it has: {known}")
    return registry.get(name, version)


def day_range(text: str) -> tuple[date, date]:
    """The first and the last day of a period, or of a range FROM..TO."""
    first, dots, last = text.partition("..")
    start, end = days_of(first)[0], days_of(last if dots else first)[1]
    if end < start:
        raise UsageError(f"--period {text} ends before it begins: write the earlier one first")
    return start, end


def definitions_in(name: str) -> Registry:
    """The definitions in a folder."""
    return Registry.open(existing_folder(name, "folder of collections"))
