r"""Cells of CSV files: how text is written, and how our readers undo it.

A spreadsheet takes a cell that begins with = + - @, a tab or a carriage return for a formula, and
runs it. A program that expects another separator splits cells at ; or at a tab; a program that
misreads quotes splits them at a comma or a line break. So each text is in quotes, and an apostrophe
is put before each such sign wherever a cell could begin: at the start of the text and after , ; " a
tab or a line break. If there are apostrophes already, one more is added, so that removing one gives
back the text:

>>> text_cell("=cmd|' /C calc'!A0"), text_cell("x;=1+1"), text_cell("'=1"), text_cell("a-b")
('"\'=cmd|\' /C calc\'!A0"', '"x;\'=1+1"', '"\'\'=1"', '"a-b"')
>>> [original(each) for each in ("'=1+1", "x;'=1+1", "''=1", "it's", "'a'")]
['=1+1', 'x;=1+1', "'=1", "it's", "'a'"]

Numbers are written without quotes. In google/rappor's map.csv, names of letters, digits and
_ . / : - are written without quotes too, so that the file equals that of its own tools to the byte;
those tools read the other names too, apostrophes included (docs/candidates.md).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from numbers import Integral, Real

FORMULA_SIGNS = "=+-@\t\r\uff1d\uff0b\uff0d\uff20"  # the last four are full-width = + - @
_SIGNS = re.escape(FORMULA_SIGNS)
_BEGINS = r"(?<![^,;\"\t\r\n])"  # at the start, or after what a reader could split at
_RUNNABLE = re.compile(rf"{_BEGINS}(?='*[{_SIGNS}])")
_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_./:-]*").fullmatch
_ESCAPED = re.compile(rf"{_BEGINS}'(?='*[{_SIGNS}])")


def text_cell(text: str) -> str:
    """A text as a cell: in quotes, without anything that could be taken for a formula."""
    return '"' + _RUNNABLE.sub("'", text).replace('"', '""') + '"'


def map_cell(text: str) -> str:
    r"""A text as a cell of google/rappor's map.csv: like `text_cell`, bare if it is plain.

    >>> map_cell("V_1"), map_cell("a.org"), map_cell("-1"), map_cell("a b")
    ('V_1', 'a.org', '"\'-1"', '"a b"')
    """
    return text if _BARE(text) else text_cell(text)


def original(text: str) -> str:
    """The text of a cell that `text_cell` wrote, after the CSV reader has removed its quotes."""
    return _ESCAPED.sub("", text) if "'" in text else text


def cell(value: object) -> str:
    """A value as a cell: text in quotes, numbers without, nothing for None and NaN.

    >>> cell("a,b"), cell(-1.5), cell(7), cell(True), cell(None), cell(math.nan)
    ('"a,b"', '-1.5', '7', 'true', '', '')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        return repr(float(value))
    return text_cell(str(value))


def line(values: Iterable[object], end: str = "\n") -> str:
    r"""One line of a file.

    >>> line(["=1", 2.5, None])
    '"\'=1",2.5,\n'
    """
    return ",".join(map(cell, values)) + end
