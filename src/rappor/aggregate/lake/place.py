"""Where a lake lies: a folder, or a URL of an object store that pyarrow knows (s3://, gs://).

A file appears whole or not at all. A local file is written under another name, synced and renamed;
an object is uploaded at once, and exists when its upload is complete.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rappor import files
from rappor.errors import MissingExtraError, ParamsError, StoreError, StoreUnavailable

SCHEMES = ("file", "s3", "gs", "gcs", "hdfs")


def is_url(name: str) -> bool:
    """Whether a name is a URL and not a path."""
    return "://" in name


class LakePlace:
    """The files of one lake, by their names relative to it.

    Args:
        where: a folder, or a URL such as s3://bucket/lake; options of pyarrow's file systems go
            into its query, such as ?endpoint_override=127.0.0.1:9000&scheme=http.

    Raises:
        ParamsError: the URL cannot be read, or the path is one of a file.
    """

    def __init__(self, where: str | Path) -> None:
        self.name = str(where).partition("?")[0]
        try:
            from pyarrow import fs
        except ImportError:
            raise MissingExtraError("lake", "analysis") from None
        self._fs = fs
        self._local: Path | None = None
        if not is_url(str(where)):
            self._local = Path(where).expanduser().absolute()
            self._system, self._base = fs.LocalFileSystem(), str(self._local)
            if self._local.exists() and not self._local.is_dir():
                raise ParamsError(f"{self.name}: this is a file; name a folder or a URL")
            return
        scheme = str(where).partition("://")[0]
        if scheme not in SCHEMES:
            raise ParamsError(f"{self.name}: a lake is a folder, or a URL of {', '.join(SCHEMES)}")
        try:
            self._system, self._base = fs.FileSystem.from_uri(str(where))
        except (OSError, ValueError) as error:
            raise ParamsError(
                f"{self.name}: this URL cannot be opened ({_first(error)}); check the address"
            ) from None
        if isinstance(self._system, fs.LocalFileSystem):
            self._local = Path(self._base)
        self._base = self._base.rstrip("/")

    def __str__(self) -> str:
        return self.name

    @property
    def url(self) -> str:
        """The place as Spark and others name it, for local folders and URLs."""
        return self.name if self._local is None else self._local.as_uri()

    def exists(self) -> bool:
        """Whether there is anything."""
        with self._translated(""):
            info = self._system.get_file_info(self._base)
        return bool(info.type != self._fs.FileType.NotFound)

    def list(self, folder: str = "") -> dict[str, int]:
        """The sizes of all files below a folder, by name."""
        base = f"{self._base}/{folder}" if folder else self._base
        chosen = self._fs.FileSelector(base, allow_not_found=True, recursive=True)
        with self._translated(folder):
            found = self._system.get_file_info(chosen)
        start = len(self._base) + 1
        return {
            info.path[start:]: int(info.size)
            for info in found
            if info.type == self._fs.FileType.File
        }

    def read(self, name: str) -> bytes | None:
        """The bytes of a file; None if there is none."""
        with self._translated(name):
            try:
                with self._system.open_input_stream(f"{self._base}/{name}") as stream:
                    return bytes(stream.read())
            except FileNotFoundError:
                return None

    def write(self, name: str, data: bytes) -> None:
        """Write a new file, whole or not at all, and look whether it is there."""
        path = f"{self._base}/{name}"
        with self._translated(name):
            if self._local is not None:
                target = Path(path)
                target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                files.write_bytes(target, data, private=True)
                return
            with self._system.open_output_stream(path) as stream:
                stream.write(data)
            found = self._system.get_file_info(path)
        if found.size != len(data):
            raise StoreUnavailable(
                f"{self.name}/{name}: {found.size} of {len(data)} bytes arrived; try again"
            )

    def delete(self, name: str) -> None:
        """Delete a file, if it is there."""
        with self._translated(name):
            try:
                self._system.delete_file(f"{self._base}/{name}")
            except FileNotFoundError:
                return

    @contextmanager
    def _translated(self, name: str) -> Iterator[None]:
        """Give errors of object stores a name; those of the local disk have one."""
        try:
            yield
        except (StoreError, FileNotFoundError):
            raise
        except OSError as error:
            if self._local is not None:
                if error.filename is None:
                    error.filename = f"{self._base}/{name}"
                raise
            raise StoreUnavailable(
                f"{self.name}/{name}: the object store did not answer as it should "
                f"({_first(error)}); check the address and the credentials, or try again"
            ) from error


def _first(error: Exception) -> str:
    """The first line of an error, which is cut: some hold whole answers of a server."""
    return str(error).partition("\n")[0][:200]
