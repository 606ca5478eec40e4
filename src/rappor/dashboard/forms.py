"""The fields of a POST, within limits; uploaded files as bytes."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import ClientDisconnect, Request

from rappor.errors import RapporError

FORM_BYTES = 2**16  # of a form without an upload
LIST_BYTES = 64 * 2**20  # a million candidates, with room to spare
_DIGITS = 12  # of a Content-Length
MAX_FIELDS, MAX_FILES = 200, 4

Form = Mapping[str, "str | bytes"]


class TooLarge(RapporError):
    """A body that is too large."""


class BadForm(RapporError):
    """A body that is not a valid form, or did not arrive."""


async def read_form(request: Request, max_bytes: int = FORM_BYTES) -> Form:
    """Read a form: the last value of each field, and the content of chosen files as bytes.

    Raises:
        TooLarge: more bytes than `max_bytes`, or no Content-Length.
        BadForm: too many fields, or not a form.
    """
    size = request.headers.get("content-length", "")
    if not (size.isascii() and size.isdigit() and len(size) <= _DIGITS) or int(size) > max_bytes:
        raise TooLarge(f"a form needs a length of at most {max_bytes} bytes")
    found: dict[str, str | bytes] = {}
    try:
        async with request.form(
            max_files=MAX_FILES, max_fields=MAX_FIELDS, max_part_size=max_bytes
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
    r"""A path of this dashboard to go to next; anything else becomes "/".

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
    """The path in the field `next` of a form."""
    return safe_next(request.state.form.get("next", "/"))
