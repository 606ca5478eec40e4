"""Collection: what clients are asked, by whom, for how long and at what cost; frozen and validated.

Each is one TOML file (docs/collections.md describes every field). Contradictions that would break a
promise are refused here; `rappor.collection.lint` finds what is merely unwise.
"""

from __future__ import annotations

import datetime
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from rappor import formats
from rappor.collection import client_json, fields, toml
from rappor.collection.periods import check_period
from rappor.errors import DefinitionError, ParamsError
from rappor.mechanism import Encoder, Entropy, Field, Ranges, View, Views, memo_digest
from rappor.mechanism.signal import Signal, signal_of
from rappor.mechanism.views import views_of
from rappor.params import Params, check_params
from rappor.privacy import add_up, epsilon_infinity, epsilon_one
from rappor.typing import Kind
from rappor.wire.dimensions import OTHER, Cell


class Phase(NamedTuple):
    """From this period on, every client reports with this p and q (§6.1)."""

    first_period: str
    p: float
    q: float


@dataclass(frozen=True, slots=True)
class Collection:
    """One version of one collection.

    Attributes:
        name: a-z, 0-9, _ and -, a letter first; at most 63 characters.
        version: 1 to 65535; any change of what clients send needs a new one.
        params: the six numbers.
        kind: string, category, boolean, ordinal, bits or tuple.
        description: what is collected and what for, in words for the person who reports it.
        owner: who is responsible for it.
        sensitivity: low, medium or high.
        reviews: where its reviews can be read.
        expires: the first day on which no report is accepted.
        on_expiry: what happens to its data on that day: delete, or keep-counts.
        platform: device; or web, where storage may be cleared.
        dialect: how strings and tuples are placed onto bits.
        categories: the list of kind category.
        ranges: the ranges of kind ordinal.
        fields: the two to four fields of kind tuple.
        views: of kind tuple: which fields are reported together, and by which share of the
            cohorts; by default the whole tuple by 80 %, the first field alone by 20 %.
        period: day or week.
        dimensions: declared names and their allowed values; anything else is sent as "other".
        keep_reports_days: how long single reports are kept; 0 keeps counts only.
        reports_per_period: how many reports a client may send in a period.
        max_values: how many distinct values a client may report in all.
        max_epsilon: the largest ε that a client may spend here; by default the cost of max_values.
        group: the name that collections about the same thing share (§6.1).
        null_reports: whether a client without a value sends a null report, so that silence reveals
            nothing.
        one_time: a client reports once, and never again (§2.1).
        budget: each period has its own B' and its own ε1 (§6.1).
        schedule: p and q from given periods on.
        expected_reports: the reports of all clients together in a period.
        values: fixed, slow or fast: how often a client's value changes.
        shared: whether most clients may hold the same value.
        clients_per_person: devices or accounts that one person may report from.
        account_secret: whether a person's clients share one secret.
        upload: the address that reports are sent to.
    """

    name: str
    version: int
    params: Params
    kind: Kind = "string"
    description: str = ""
    owner: str = ""
    sensitivity: str = "medium"
    reviews: tuple[str, ...] = ()
    expires: datetime.date | None = None
    on_expiry: str = "delete"
    platform: str = "device"
    dialect: str = "rappor-v1"
    categories: tuple[str, ...] | None = None
    ranges: Ranges | None = None
    fields: tuple[Field, ...] | None = None
    views: tuple[View, ...] | None = None
    period: str = "day"
    dimensions: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    keep_reports_days: int = 0
    reports_per_period: int = 1
    max_values: int = 1
    max_epsilon: float = 0.0
    group: str | None = None
    null_reports: bool = False
    one_time: bool = False
    budget: bool = False
    schedule: tuple[Phase, ...] = ()
    expected_reports: int | None = None
    values: str = "fixed"
    shared: bool = False
    clients_per_person: int = 1
    account_secret: bool = False
    upload: str | None = None

    def __post_init__(self) -> None:
        """Validate and normalise, or raise ParamsError with the name of the field."""
        check_params(self.params)
        for name, check in fields.CHECKS.items():
            object.__setattr__(self, name, check(name, getattr(self, name)))
        if self.tuple_views is not None:
            object.__setattr__(self, "views", self.tuple_views.views)
        self.signal(0)  # refuses parts that do not fit together
        for ranges in (self.ranges, *(declared.ranges for declared in self.fields or ())):
            if ranges is not None:
                fields.check_edges(ranges)
        object.__setattr__(self, "schedule", self._checked_schedule())
        self._refuse_contradictions()
        object.__setattr__(self, "max_epsilon", self._checked_cap())

    def _checked_schedule(self) -> tuple[Phase, ...]:
        made: list[Phase] = []
        for number, phase in enumerate(fields.phases("schedule", self.schedule)):
            where = f"schedule[{number}]"
            first, p, q = phase
            try:
                check_period(self.period, first)
                changed = replace(self.params, p=p, q=q)
            except ParamsError as error:
                raise ParamsError(f"{where}: {error}") from None
            if made and first <= made[-1].first_period:
                raise ParamsError(f"{where}: the periods of a schedule must come in order")
            made.append(Phase(first, changed.p, changed.q))
        return tuple(made)

    def _refuse_contradictions(self) -> None:
        f, p, q = self.params.f, self.params.p, self.params.q
        if self.one_time and f != 0 and (p, q) != (0, 1):
            raise ParamsError(
                "one_time needs f = 0, or p = 0 with q = 1, so that a single randomization is "
                f"left; got f = {f!r}, p = {p!r}, q = {q!r}"
            )
        for other in ("budget", "null_reports", "schedule"):
            if self.one_time and getattr(self, other):
                raise ParamsError(
                    f"one_time and {other} exclude each other: there is one report; leave one of "
                    "them out"
                )
        for mode in ("one_time", "budget"):
            if getattr(self, mode) and self.reports_per_period != 1:
                raise ParamsError(
                    f"{mode} allows one report in a period: reports_per_period must be 1, got "
                    f"{self.reports_per_period}"
                )

    def _checked_cap(self) -> float:
        if self.max_epsilon:
            return fields.positive_number("max_epsilon", self.max_epsilon)
        times = 1 if self.one_time else self.max_values + self.null_reports
        cap = add_up([(self.epsilon_infinity, times)])
        if cap == float("inf"):
            raise ParamsError(
                "max_epsilon must be given if ε has no limit of its own (f = 0, or budget)"
            )
        return cap

    @property
    def memo_digest(self) -> str:
        """The digest of everything that shapes B'; versions with the same digest share B'."""
        return memo_digest(
            self.params,
            self.kind,
            self.dialect,
            self.categories,
            self.ranges,
            self.tuple_views,
        )

    @property
    def tuple_views(self) -> Views | None:
        """The fields and views of kind tuple; None for other kinds."""
        return views_of(self.fields, self.views)

    @property
    def epsilon_one(self) -> float:
        """ε of one report, the largest over the schedule."""
        every = (self.params, *(self.params_for(phase.first_period) for phase in self.schedule))
        return max(epsilon_one(params, self.kind) for params in every)

    @property
    def epsilon_infinity(self) -> float:
        """ε of all reports on one value; ε1 if there is only one report, ∞ in budget mode."""
        if self.one_time:
            return self.epsilon_one
        return float("inf") if self.budget else epsilon_infinity(self.params, self.kind)

    @property
    def cells(self) -> int:
        """How many cells the dimensions make, "other" included."""
        return math.prod(len(values) + 1 for values in self.dimensions.values())

    def params_for(self, period: str | None) -> Params:
        """The parameters of reports in a period, with p and q of the schedule."""
        if period is None:
            return self.params
        period = check_period(self.period, period)
        current = self.params
        for phase in self.schedule:  # text order is time order for periods of one kind
            if phase.first_period <= period:
                current = replace(self.params, p=phase.p, q=phase.q)
        return current

    def signal(self, cohort: int) -> Signal:
        """What a cohort makes of a value: its true filter, and what stands for it in the memo."""
        return signal_of(
            self.params,
            self.kind,
            self.dialect,
            cohort,
            self.categories,
            self.ranges,
            self.tuple_views,
        )

    def encoder(
        self, secret: bytes, period: str | None = None, entropy: Entropy = os.urandom
    ) -> Encoder:
        """One client's encoder, for reports of a period.

        Without a period, p and q are those before the schedule; budget mode needs one.
        """
        if self.budget and period is None:
            raise ParamsError("period must be given in budget mode: each period has its own B'")
        return Encoder(
            self.params_for(period),
            secret=secret,
            collection=self.name,
            kind=self.kind,
            dialect=self.dialect,
            categories=self.categories,
            ranges=self.ranges,
            fields=self.fields,
            views=self.views,
            period=period if self.budget else None,
            entropy=entropy,
        )

    def cell(self, dimensions: Mapping[str, object]) -> Cell:
        """The cell of a client: each declared dimension with an allowed value, or "other".

        Dimensions that are not declared are left out. Raises nothing, for any input.
        """
        return tuple(
            (name, value if isinstance(value, str) and value in allowed else OTHER)
            for name, allowed in sorted(self.dimensions.items())
            for value in (dimensions.get(name),)
        )

    @classmethod
    def from_toml(cls, text: str, folder: str | PathLike[str] | None = None) -> Collection:
        """A collection from TOML; if it names a plan, the plan is read from `folder`."""
        return cls(**toml.parse(text, None if folder is None else Path(folder).expanduser()))

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Collection:
        """A collection from its file; errors name the file."""
        text = formats.read_text(path)
        try:
            return cls.from_toml(text, Path(path).expanduser().parent)
        except ParamsError as error:
            raise ParamsError(f"{path}: {error}") from None

    def to_toml(self) -> str:
        """The TOML of the collection; it reads back as an equal one."""
        return toml.text_of(self)

    @classmethod
    def from_client_json(cls, text: str) -> Collection:
        """A collection from the JSON that clients read; what only others need has its default.

        Raises:
            DefinitionError: a client refuses it; the error has a code and the path of the field.
        """
        given = client_json.parse(text)
        try:
            return cls(**given)
        except ParamsError as error:
            raise DefinitionError("contradiction", "", str(error)) from None

    @classmethod
    def read_client_json(cls, path: str | PathLike[str]) -> Collection:
        """A collection from the JSON file that clients read; errors name the file."""
        text = formats.read_text(path)
        try:
            return cls.from_client_json(text)
        except DefinitionError as error:
            raise error.in_file(path) from None

    def to_client_json(self) -> str:
        """The fields that a client uses, as canonical JSON (docs/clients.md)."""
        return client_json.text_of(self)
