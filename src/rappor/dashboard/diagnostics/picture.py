"""The heat map as a PNG file, for browsers without scripts and for reports.

Standard library and numpy: a cell is a square of whole pixels, so nothing has to be smoothed.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

from rappor.charts.scales import count_colour, residual_colour, rgb
from rappor.charts.theme import colours
from rappor.typing import FloatArray

_LEVELS = 241  # steps of a palette: 0.05 standard deviations
_WIDEST, _SMALLEST, _LARGEST = 1024, 4, 20  # pixels: of the picture, of a cell


def heat_png(table: FloatArray, residuals: bool, theme: str = "light") -> bytes:
    """A picture of a table, one square for each number; nan is left blank.

    Args:
        table: shape (rows, columns).
        residuals: whether the numbers are residuals; counts otherwise.
        theme: "light" or "dark".
    """
    size = min(max(_WIDEST // table.shape[1], _SMALLEST), _LARGEST)
    palette = np.array([*_palette(residuals, theme), rgb(colours(theme)["bg"])], np.uint8)
    cells = np.repeat(np.repeat(_levels(table, residuals), size, axis=0), size, axis=1)
    return png(cells, palette)


def _palette(residuals: bool, theme: str) -> list[tuple[int, int, int]]:
    share = np.linspace(0.0, 1.0, _LEVELS).tolist()
    if residuals:
        return [residual_colour(12 * each - 6, theme) for each in share]
    return [count_colour(each, theme) for each in share]


def _levels(table: FloatArray, residuals: bool) -> NDArray[np.uint8]:
    """The palette's number of each cell; the last one where there is none."""
    known = ~np.isnan(table)
    low, high = -6.0, 6.0
    if not residuals and known.any():
        low, high = float(np.nanmin(table)), float(np.nanmax(table))
    share = np.clip((np.where(known, table, low) - low) / max(high - low, 1e-300), 0.0, 1.0)
    return np.where(known, np.round(share * (_LEVELS - 1)), _LEVELS).astype(np.uint8)


def png(pixels: NDArray[np.uint8], palette: NDArray[np.uint8]) -> bytes:
    """A PNG file of pixels that are numbers of a palette's colours.

    Args:
        pixels: shape (height, width).
        palette: shape (up to 256, 3).
    """
    height, width = pixels.shape
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    lines = np.zeros((height, width + 1), np.uint8)  # each line begins with its filter: none
    lines[:, 1:] = pixels
    parts = (
        (b"IHDR", head),
        (b"PLTE", palette.tobytes()),
        (b"IDAT", zlib.compress(lines.tobytes(), 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, body) for name, body in parts)


def _chunk(name: bytes, body: bytes) -> bytes:
    check = zlib.crc32(name + body)
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", check)
