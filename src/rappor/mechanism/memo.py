"""What a client derives from its secret: its cohort, and the key of its memoized responses.

B' = PRF(secret; collection, memo digest, cohort, value). The memo digest covers everything that
shapes B' and nothing else: a new p, q or version keeps B'; a new f, k, h, m, kind, dialect,
category, range, field or view makes an independent one, whose ε adds. docs/protocol.md fixes the
derivation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from rappor.checks import text, whole
from rappor.errors import ParamsError
from rappor.mechanism.entropy import KeyedStream, below, derive_key, frame
from rappor.mechanism.kinds import check_kind
from rappor.mechanism.predicates import Ranges
from rappor.mechanism.views import Views
from rappor.params import MAX_M, Params, check_params
from rappor.typing import Kind


def memo_digest(
    params: Params,
    kind: Kind = "string",
    dialect: str = "rappor-v1",
    categories: Sequence[str] | None = None,
    ranges: Ranges | None = None,
    views: Views | None = None,
) -> str:
    """SHA-256, in hex, of what shapes B'.

    That is kind, dialect, k, h, m and f, and categories, ranges, or fields and views.
    """
    check_params(params)
    above, below_line = params.f.as_integer_ratio()
    parts = [
        b"rappor-v1 memo digest",
        check_kind(kind).encode("ascii"),
        text("dialect", dialect).encode("utf-8"),
        f"{params.k} {params.h} {params.m} {above}/{below_line}".encode("ascii"),
        *_listed(categories, ranges),
        *(() if views is None else _viewed(views, params.m)),
    ]
    return hashlib.sha256(frame(*parts)).hexdigest()


def _listed(categories: Sequence[str] | None, ranges: Ranges | None) -> Iterator[bytes]:
    for category in categories or ():
        yield category.encode("utf-8")
    for edge in ranges.edges if ranges is not None else ():
        yield f"{edge.numerator:x}/{edge.denominator:x}".encode("ascii")


def _viewed(views: Views, m: int) -> Iterator[bytes]:
    """A frame for each field and each view; a view counts with its cohorts, not with its share."""
    for field in views.fields:
        named = field.name.encode("ascii"), field.kind.encode("ascii")
        yield frame(b"field", *named, *_listed(field.categories, field.ranges))
    for view, cohorts in zip(views.views, views.cohorts(m), strict=True):
        yield frame(b"view", b"%d" % cohorts, *(name.encode("ascii") for name in view.fields))


def derive_cohort(secret: bytes, collection: str, m: int) -> int:
    """The client's cohort in a collection: uniform over m, permanent, never stored."""
    check_secret(secret)
    whole("m", m, 1, MAX_M)
    labels = (b"cohort", text("collection", collection).encode("utf-8"), m.to_bytes(4, "big"))
    return below(m, KeyedStream(derive_key(secret, *labels)).reader(b""))


def derive_memo_key(
    purpose: str, secret: bytes, collection: str, digest: str, cohort: int, period: str | None
) -> bytes:
    """The key of a client's permanent responses in one collection.

    Args:
        purpose: "value" for values; "null" for null reports.
        secret: the client's secret.
        collection: the collection's name.
        digest: `memo_digest` of the collection.
        cohort: the client's cohort.
        period: in budget mode the calendar period; each period then has its own B' (§6.1).
    """
    check_secret(secret)
    labels = [collection.encode("utf-8"), bytes.fromhex(digest), cohort.to_bytes(4, "big")]
    if period is not None:
        labels.append(period.encode("utf-8"))
    return derive_key(secret, purpose.encode("ascii"), *labels)


def check_secret(secret: object) -> None:
    """Refuse what cannot be a secret; the message never shows it."""
    if not isinstance(secret, bytes) or not secret:
        raise ParamsError("secret must be non-empty bytes; rappor.new_secret() makes one")
