"""The key of a cell: what reports that are counted together have in common.

A cell is one collection, version, period and combination of declared dimensions. Apart from the
cohort, the store has nothing finer.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import NamedTuple
from urllib.parse import quote, unquote

from rappor.errors import StoreError

_SAFE = " "  # not escaped, like letters, digits and _.-~
COHORT_BITS = 10  # m is at most 1024
_ID_BITS = 63 - COHORT_BITS


class CellKey(NamedTuple):
    """The key of one cell.

    Attributes:
        collection: its name.
        version: its version.
        period: "2026-11-16" or "2026-W47".
        dimensions: the declared dimensions in the canonical form of `dimensions_text`.
    """

    collection: str
    version: int
    period: str
    dimensions: str = ""

    @classmethod
    def of(
        cls, collection: str, version: int, period: str, pairs: Iterable[tuple[str, str]] = ()
    ) -> CellKey:
        """Make a key from dimensions as (name, value) pairs.

        >>> CellKey.of("homepage", 1, "2026-11-16", [("os", "mac"), ("country", "NZ")]).dimensions
        'country=NZ;os=mac'
        """
        return cls(collection, version, period, dimensions_text(pairs))

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The dimensions as sorted (name, value) pairs.

        >>> CellKey("homepage", 1, "2026-11-16", "country=NZ;os=mac").pairs
        (('country', 'NZ'), ('os', 'mac'))
        """
        return dimensions_pairs(self.dimensions)

    def __str__(self) -> str:
        """The cell's name in messages."""
        where = f" [{self.dimensions}]" if self.dimensions else ""
        return f"{self.collection} v{self.version} {self.period}{where}"


def dimensions_text(pairs: Iterable[tuple[str, str]]) -> str:
    """The canonical text of dimensions: sorted by name, with = ; and % escaped.

    >>> dimensions_text([("os", "mac"), ("app", "a=b;c")])
    'app=a%3Db%3Bc;os=mac'
    >>> dimensions_text([])
    ''
    """
    return ";".join(f"{quote(name, _SAFE)}={quote(value, _SAFE)}" for name, value in sorted(pairs))


def dimensions_pairs(text: str) -> tuple[tuple[str, str], ...]:
    """The pairs of a canonical text, or StoreError.

    >>> dimensions_pairs("app=a%3Db%3Bc;os=mac")
    (('app', 'a=b;c'), ('os', 'mac'))
    """
    if not text:
        return ()
    pairs = [part.partition("=") for part in text.split(";")]
    decoded = tuple((unquote(name), unquote(value)) for name, _, value in pairs)
    names = [name for name, _ in decoded]
    if dimensions_text(decoded) != text or not all(names) or len(set(names)) != len(names):
        raise StoreError(f"dimensions are not in their canonical form: {text[:80]!r}")
    return decoded


def key_bytes(key: CellKey) -> bytes:
    """A key as bytes: each text with its length in front, so that no two keys are equal."""
    texts = (key.collection, str(key.version), key.period, key.dimensions)
    encoded = [text.encode() for text in texts]
    return b"".join(len(text).to_bytes(4, "little") + text for text in encoded)


def cell_id(key: CellKey) -> int:
    """A 53-bit number for a key. It is a hash, so it tells nothing about the order of arrival.

    >>> cell_id(CellKey("homepage", 1, "2026-11-16")) < 2**53
    True
    """
    digest = blake2b(key_bytes(key), digest_size=8, person=b"rappor-cell").digest()
    return int.from_bytes(digest, "little") >> (64 - _ID_BITS)
