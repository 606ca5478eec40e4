"""Encoder: value -> Report, the whole client-side algorithm of §2, and nothing else.

It has a secret, but no files, no network and no seed. The caller keeps the secret, counts what is
spent, and sends the reports.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

from rappor.checks import text, whole
from rappor.errors import EntropyError, ParamsError
from rappor.mechanism.entropy import NO_ENTROPY, Entropy, checked
from rappor.mechanism.irr import instantaneous_response
from rappor.mechanism.memo import (
    check_secret,
    derive_cohort,
    derive_memo_key,
    memo_digest,
)
from rappor.mechanism.predicates import Ranges
from rappor.mechanism.prr import permanent_response
from rappor.mechanism.report import Report
from rappor.mechanism.signal import signal_of
from rappor.mechanism.views import Field, View, views_of
from rappor.params import Params, check_params
from rappor.typing import Kind


class Trace(NamedTuple):
    """The life of one report (Figure 1 of the paper). Only `report` may be sent."""

    signal: int
    permanent: int
    report: Report


class Encoder:
    """Encodes the values of one client for one collection.

    Attributes:
        params: the collection's parameters.
        collection: its name.
        kind: of the collection.
        dialect: how strings and tuples are placed onto bits.
        cohort: of the client.
        memo_digest: of everything that shapes B'.
        view: for kind `tuple`, the fields that the client's cohort reports; else None.

    >>> from rappor.params import Params
    >>> encoder = Encoder(Params.preset("windows"), secret=bytes(32), collection="homepage")
    >>> encoder.encode("example.com").cohort == encoder.cohort
    True
    """

    __slots__ = (
        "_instantaneous",
        "_null",
        "_permanent",
        "_signal",
        "cohort",
        "collection",
        "dialect",
        "kind",
        "memo_digest",
        "params",
        "view",
    )

    def __init__(
        self,
        params: Params,
        *,
        secret: bytes,
        collection: str,
        cohort: int | None = None,
        kind: Kind = "string",
        dialect: str = "rappor-v1",
        categories: Sequence[str] | None = None,
        ranges: Ranges | None = None,
        fields: Sequence[Field] | None = None,
        views: Sequence[View] | None = None,
        period: str | None = None,
        entropy: Entropy = os.urandom,
    ) -> None:
        """Prepare one client's encoder.

        Args:
            params: the collection's parameters.
            secret: the client's secret bytes, drawn once with `rappor.new_secret()` and kept.
            collection: the collection's name; other collections give independent responses.
            cohort: 0 to m-1; if None, derived from the secret, as clients do.
            kind: string, category, boolean, ordinal, bits or tuple.
            dialect: how strings and tuples are placed onto bits.
            categories: the strings of kind `category`, in bit order.
            ranges: the ranges of kind `ordinal`.
            fields: the two to four fields of kind `tuple`.
            views: which fields each cohort reports; by default the whole tuple in 80 % of the
                cohorts, and its first field in the others.
            period: in budget mode the calendar period, which then has its own B' (§6.1).
            entropy: the source of the instantaneous randomness; by default the operating system.
        """
        check_secret(secret)
        collection = text("collection", collection)
        if period is not None:
            period = text("period", period)
        check_params(params)
        self.params = params
        self.collection = collection
        self.kind = kind
        self.dialect = dialect
        if cohort is None:
            self.cohort = derive_cohort(secret, collection, params.m)
        else:
            self.cohort = whole("cohort", cohort, 0, params.m - 1, private=True)
        if isinstance(categories, (list, tuple)):
            categories = tuple(categories)  # a copy that the caller cannot change
        chosen = views_of(fields, views)
        shape = (categories, ranges, chosen)
        self._signal = signal_of(params, kind, dialect, self.cohort, *shape)
        self.memo_digest = memo_digest(params, kind, dialect, *shape)
        self.view = None if chosen is None else chosen.view_of(self.cohort, params.m).fields
        memo = (secret, collection, self.memo_digest, self.cohort, period)
        self._permanent = permanent_response(params, derive_memo_key("value", *memo))
        self._null: Callable[[], int] = lambda: permanent_response(
            params, derive_memo_key("null", *memo)
        )(0, b"")
        if not callable(entropy):
            raise ParamsError("entropy must be a function that gives random bytes")
        self._instantaneous = instantaneous_response(params, checked(entropy))

    def encode(self, value: object) -> Report:
        """One report of a value: B' is the same in every call, the report is drawn again."""
        return self._report(self._permanent(*self._signal(value)))

    def encode_null(self) -> Report:
        """A null report ("no value"): the all-zero filter, with its own memo."""
        return self._report(self._null())

    def trace(self, value: object) -> Trace:
        """B, B' and a new report of a value, to show a person what happens to it.

        B and B' are what the mechanism hides: never send or store them.
        """
        signal, memo = self._signal(value)
        permanent = self._permanent(signal, memo)
        return Trace(signal, permanent, self._report(permanent))

    def _report(self, permanent: int) -> Report:
        try:
            return Report(self.cohort, self._instantaneous(permanent))
        except (OSError, NotImplementedError) as error:
            raise EntropyError(NO_ENTROPY) from error

    def __repr__(self) -> str:
        """Parameters, collection and kind; never the secret."""
        return f"Encoder({self.params}, collection={self.collection!r}, kind={self.kind!r})"
