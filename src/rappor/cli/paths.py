"""Names of files and folders on the command line, checked before any work is done."""

from __future__ import annotations

from pathlib import Path

from rappor.errors import ParamsError


def path_of(name: str) -> Path:
    """The path with `~` expanded, or ParamsError."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        raise ParamsError(f"{name}: no such home directory; check the path") from None


def target_of(name: str) -> Path:
    """The file to write, which need not exist; its folder must, or ParamsError."""
    if name == "-":
        raise ParamsError("-: this is not written to standard output; name a file")
    target = path_of(name).resolve()
    if target.is_dir():
        raise ParamsError(f"{name}: this is a folder; name a file")
    if not target.parent.exists():
        raise ParamsError(f"{name}: its folder does not exist; create it first")
    if not target.parent.is_dir():
        raise ParamsError(f"{name}: its folder is a file; check the path")
    return target


def new_target(name: str, *, force: bool) -> Path:
    """The file to write; if it exists, ParamsError unless `force`.

    A pipe or a device is not replaced but written to, so it needs no `force`.
    """
    if target_of(name).is_file() and not force:
        raise ParamsError(f"{name}: exists already; --force replaces it")
    return path_of(name)


def existing_file(name: str, what: str) -> Path:
    """A file that must exist, or ParamsError."""
    path = path_of(name)
    if not path.exists():
        raise ParamsError(f"{name}: no such {what}; check the path")
    if path.is_dir():
        raise ParamsError(f"{name}: this is a folder; name the {what}")
    return path


def existing_folder(name: str, what: str) -> Path:
    """A folder that must exist, or ParamsError."""
    folder = path_of(name)
    if not folder.exists():
        raise ParamsError(f"{name}: no such {what}; check the path")
    if not folder.is_dir():
        raise ParamsError(f"{name}: this is a file; name the {what}")
    return folder


def output_folder(name: str) -> Path:
    """A folder to write files to, which need not exist; ParamsError if a file has its name."""
    if name == "-":
        raise ParamsError("-: files are not written to standard output; name a folder")
    folder = path_of(name)
    for place in (folder, *folder.parents):
        if place.exists():
            if not place.is_dir():
                what = "this" if place == folder else place
                raise ParamsError(f"{name}: {what} is a file; name a folder")
            break
    return folder
