"""Markers: texts that no program writes by itself, and the search for their traces in its files."""

import base64
from collections.abc import Iterator
from pathlib import Path

MARK = "qZ7xkVw"  # begins every marker; its bytes are in no request but inside one
NETWORK = bytes.fromhex("20010db85ca1ab1e")  # of every address that is said to have forwarded


def marker(number: int) -> str:
    """One of many markers."""
    return f"{MARK}{number:06d}"


def traces(data: bytes) -> list[str]:
    """The forms of a marker or an address that some bytes hold."""
    folded = data.lower()
    forms = {
        "text": MARK.lower().encode(),
        "wide text": MARK.lower().encode("utf-16-le"),
        "hexadecimal": MARK.encode().hex().encode(),
        "address": b"2001:db8:5ca1",
        "address bytes": NETWORK,
    }
    found = [name for name, form in forms.items() if form in folded]
    for shift in range(3):  # base64 of a text depends on where in a triple it starts
        form = base64.b64encode(bytes(shift) + MARK.encode())[4:8]
        if form in data:
            found.append("base64")
    return found


def written(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield str(path.relative_to(folder)), path.read_bytes()
