"""The fields of a POST: bounded, uploads read as bytes."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import ClientDisconnect, Request

from rappor.errors import RapporError

FORM_BYTES = 2**16  # of a form that nobody uploads anything with
LIST_BYTES = 64 * 2**20  # a million candidates, with room
_DIGITS = 12  # of a length
MAX_FIELDS, MAX_FILES = 200, 4

Form = Mapping[str, "str | bytes"]


class TooLarge(RapporError):
    """A body beyond what a form may have."""


class BadForm(RapporError):
    """A body that is no form of ours, or that never arrived."""


async def read_form(request: Request, most: int = FORM_BYTES) -> Form:
    """Field by field the last value; a file's content as bytes, nothing where no file was chosen.

    Raises:
        TooLarge: more bytes than `most`, or no length that says how many there are.
        BadForm: more fields than any form of ours has, or not a form.
    """
    size = request.headers.get("content-length", "")
    if not (size.isascii() and size.isdigit() and len(size) <= _DIGITS) or int(size) > most:
        raise TooLarge(f"a form needs a length of at most {most} bytes")
    found: dict[str, str | bytes] = {}
    try:
        async with request.form(
            max_files=MAX_FILES, max_fields=MAX_FIELDS, max_part_size=most
        ) as form:
            for name, value in form.multi_items():
                if isinstance(value, UploadFile):
                    if value.filename:
                        found[name] = await value.read()
                else:
                    found[name] = value
    except (MultiPartException, HTTPException, ClientDisconnect):
        raise BadForm("a form that cannot be read") from None
    return found


def safe_next(wanted: object) -> str:
    r"""A path of ours to go on to; anything else becomes the first page.

    >>> safe_next("/ingest?x=1"), safe_next("//evil.example"), safe_next("/\\evil.example")
    ('/ingest?x=1', '/', '/')
    """
    if not isinstance(wanted, str) or not wanted.startswith("/"):
        return "/"
    if any(sign <= " " or sign == "\\" for sign in wanted):
        return "/"
    try:
        parts = urlsplit(wanted)
    except ValueError:
        return "/"
    return "/" if parts.scheme or parts.netloc or wanted.startswith("//") else wanted


def back(request: Request) -> str:
    """Where a form wants to go on to: its field `next`."""
    return safe_next(request.state.form.get("next", "/"))
