"""Registry: a folder of collections, one TOML file each; a name may have several versions.

A collector accepts, and an analyst decodes, the collections of its registry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path

from rappor.checks import show
from rappor.collection.definition import Collection
from rappor.errors import ParamsError


class Registry:
    """Collections by name and version.

    >>> from rappor.params import Params
    >>> windows = Params.preset("windows")
    >>> registry = Registry(Collection("homepage", version, windows) for version in (1, 2))
    >>> registry.get("homepage").version, registry.get("homepage", 1).version
    (2, 1)
    """

    __slots__ = ("_found",)

    def __init__(self, collections: Iterable[Collection] = ()) -> None:
        """Take collections; the same name and version twice is refused."""
        found: dict[str, dict[int, Collection]] = {}
        for collection in collections:
            if not isinstance(collection, Collection):
                raise ParamsError(
                    f"a registry must hold Collections, got {type(collection).__name__}"
                )
            versions = found.setdefault(collection.name, {})
            if versions.setdefault(collection.version, collection) is not collection:
                raise ParamsError(
                    f"collection {collection.name} has version {collection.version} twice: remove "
                    "one of its files, or give it the next number"
                )
        self._found = {
            name: dict(sorted(versions.items())) for name, versions in sorted(found.items())
        }

    @classmethod
    def open(cls, folder: str | PathLike[str]) -> Registry:
        """The collections of every `*.toml` file in a folder, or ParamsError naming the file."""
        return cls(Collection.read(path) for path in definition_files(folder))

    def get(self, name: str, version: int | None = None) -> Collection:
        """A collection, the newest version if none is named, or ParamsError."""
        versions = self._found.get(name) if isinstance(name, str) else None
        if versions is None:
            there = ", ".join(self._found) or "none"
            raise ParamsError(f"there is no collection {show(name)}; there are: {there}")
        if version is None:
            return next(reversed(versions.values()))
        if version not in versions:
            listed = ", ".join(map(str, versions))
            raise ParamsError(f"collection {name} has no version {show(version)}, only {listed}")
        return versions[version]

    def all(self) -> tuple[Collection, ...]:
        """Every version of every collection, by name and version."""
        return tuple(
            collection for versions in self._found.values() for collection in versions.values()
        )

    def newest(self) -> tuple[Collection, ...]:
        """The newest version of each collection, by name."""
        return tuple(self.get(name) for name in self._found)

    def __iter__(self) -> Iterator[Collection]:
        return iter(self.all())

    def __len__(self) -> int:
        return len(self.all())

    def __contains__(self, name: object) -> bool:
        return name in self._found


def definition_files(folder: str | PathLike[str]) -> list[Path]:
    """The `*.toml` files of a folder by name, or ParamsError if it cannot be read."""
    try:
        place = Path(folder).expanduser()
        if not place.is_dir():
            raise ParamsError(
                f"{folder} is not a folder of collections; name the one that has their *.toml files"
            )
        return sorted(path for path in place.iterdir() if path.suffix == ".toml")
    except ParamsError:
        raise
    except OSError as error:
        raise ParamsError(f"cannot read the folder {folder}: {error.strerror}") from error
    except (RuntimeError, ValueError) as error:  # no home directory, or a NUL in the path
        raise ParamsError(f"cannot read the folder {show(str(folder))}: {error}") from None
