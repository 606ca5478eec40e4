"""Ends a collection early: its definition, and the text of its file with all comments."""

from __future__ import annotations

import datetime
import re
from dataclasses import replace
from pathlib import Path

from rappor.collection.definition import Collection
from rappor.collection.toml import literal
from rappor.errors import ParamsError

_TABLE = re.compile(r"^[ \t]*\[", re.MULTILINE)


def retired(
    collection: Collection, today: datetime.date, on_expiry: str | None = None
) -> Collection:
    """The same collection, ended today; one that has ended already keeps its day.

    >>> from rappor.params import Params
    >>> made = Collection("c", 1, Params.preset("windows"), expires=datetime.date(2027, 1, 1))
    >>> str(retired(made, datetime.date(2026, 11, 16)).expires)
    '2026-11-16'
    """
    ended = today if collection.expires is None else min(collection.expires, today)
    return replace(collection, expires=ended, on_expiry=on_expiry or collection.on_expiry)


def retired_text(text: str, folder: Path, before: Collection, after: Collection) -> str:
    """The TOML of a definition with another end; everything else stays as it was written.

    Args:
        text: the TOML of `before`.
        folder: where its file is, for a plan that it names.
        before: the definition.
        after: the same definition with another `expires` or `on_expiry`.

    Raises:
        ParamsError: the text is written so that it cannot be changed safely.
    """
    changed = text
    for name in ("expires", "on_expiry"):
        value = getattr(after, name)
        if getattr(before, name) != value:
            changed = _with_field(changed, name, literal(value))
    if not _reads_as(changed, folder, after):
        raise ParamsError(
            f"{before.name} v{before.version}: its file cannot be changed safely; write "
            f"expires = {after.expires} and on_expiry = {literal(after.on_expiry)} into it, then "
            "run this again"
        )
    return changed


def _with_field(text: str, name: str, value: str) -> str:
    """Replace the value of a field, or add the field before the first table."""
    table = _TABLE.search(text)
    end = len(text) if table is None else table.start()
    head, rest = text[:end], text[end:]
    line = re.compile(rf"^({name}[ \t]*=[ \t]*)[^#\n]*?([ \t]*(?:#.*)?)$", re.MULTILINE)
    if len(line.findall(head)) == 1:
        return line.sub(rf"\g<1>{value}\g<2>", head) + rest
    return f"{head.rstrip()}\n{name} = {value}\n\n{rest}"


def _reads_as(text: str, folder: Path, wanted: Collection) -> bool:
    try:
        return Collection.from_toml(text, folder) == wanted
    except ParamsError:
        return False
