"""Views: which fields of a tuple a client reports; its cohort chooses (docs/theory/views.md).

A client reports RAPPOR(view(value)): the fields of its cohort's view become one byte string, which
is hashed and memoized like any string. Fields outside the view never reach the mechanism.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as attribute
from fractions import Fraction
from typing import Literal, get_args

from rappor.checks import between_0_and_1, show
from rappor.errors import EncodeError, ParamsError
from rappor.mechanism.bloom import value_bytes
from rappor.mechanism.entropy import frame
from rappor.mechanism.predicates import Ranges, boolean_bit, category_bit, category_index

FieldKind = Literal["string", "category", "boolean", "ordinal"]
FIELD_KINDS: tuple[FieldKind, ...] = get_args(FieldKind)
FIELD_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
MIN_FIELDS, MAX_FIELDS = 2, 4
DEFAULT_SHARES = (0.8, 0.2)  # of the whole tuple, and of its first field alone


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a tuple.

    Attributes:
        name: 1 to 32 of a-z, 0-9 and _, a letter first.
        kind: string, category, boolean or ordinal.
        categories: the strings of kind category.
        ranges: the ranges of kind ordinal.
    """

    name: str
    kind: FieldKind
    categories: tuple[str, ...] | None = None
    ranges: Ranges | None = None
    _index: dict[str, int] = attribute(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Validate, or raise ParamsError."""
        _check_field(self.name, self.kind)
        for part, kind in (("categories", "category"), ("ranges", "ordinal")):
            given = getattr(self, part) is not None
            if given != (self.kind == kind):
                verb = "belong to" if given else "are missing for"
                raise ParamsError(f"field {self.name}: {part} {verb} kind {kind!r}")
        if self.ranges is not None and not isinstance(self.ranges, Ranges):
            raise ParamsError(f"field {self.name}: ranges must be rappor.Ranges")
        if self.categories is not None:
            try:
                index = category_index(self.categories)
            except ParamsError as error:
                raise ParamsError(f"field {self.name}: {error}") from None
            object.__setattr__(self, "categories", tuple(self.categories))
            object.__setattr__(self, "_index", index)

    def part(self, value: object) -> bytes:
        """The canonical bytes of one value of this field; EncodeError never shows the value.

        A string is its UTF-8 bytes, a category its name, a boolean `true` or `false`, a number the
        index of its range in decimal: two numbers of one range have the same bytes.

        >>> Field("age", "ordinal", ranges=Ranges((18, 65))).part(20)
        b'1'
        """
        try:
            if self.ranges is not None:
                return b"%d" % self.ranges.range_of(value)
            if self.kind == "boolean":
                return b"true" if boolean_bit(value) else b"false"
            if self.kind == "category":
                category_bit(value, self._index)  # refuses what is not listed
            return value_bytes(value)
        except EncodeError as error:
            raise EncodeError(f"field {self.name}: {error}") from None


@dataclass(frozen=True, slots=True)
class View:
    """Some fields of a tuple, in the order in which they are encoded.

    Attributes:
        fields: names of fields.
        share: the share of the cohorts that report them, above 0 and at most 1.
    """

    fields: tuple[str, ...]
    share: float

    def __post_init__(self) -> None:
        """Validate, or raise ParamsError."""
        if not isinstance(self.fields, (list, tuple)) or not self.fields:
            raise ParamsError(f"a view must list names of fields, got {show(self.fields)}")
        if not all(type(name) is str for name in self.fields):
            raise ParamsError(f"a view must list names of fields, got {show(self.fields)}")
        if len(set(self.fields)) != len(self.fields):
            raise ParamsError(f"a view must list each field once, got {show(self.fields)}")
        object.__setattr__(self, "fields", tuple(self.fields))
        share = 1.0 if self.share == 1 else between_0_and_1("share", self.share)
        object.__setattr__(self, "share", share)


@dataclass(frozen=True, slots=True)
class Views:
    r"""The fields of a tuple, and the views among which the cohort chooses.

    Attributes:
        fields: two to four, with distinct names.
        views: different ones whose shares add up to 1 and which use every field. By default the
            whole tuple for 80 % of the cohorts and the first field alone for 20 %.

    >>> views = Views((Field("homepage", "string"), Field("beta", "boolean")))
    >>> views.table(10)
    (0, 0, 0, 0, 0, 0, 0, 0, 1, 1)
    >>> views.encode(0, {"homepage": "x", "beta": True})
    b'\x00\x00\x00\x01x\x00\x00\x00\x04true'
    >>> views.encode(1, {"homepage": "x", "beta": True})
    b'\x00\x00\x00\x01x'
    """

    fields: tuple[Field, ...]
    views: tuple[View, ...]

    def __init__(self, fields: Sequence[Field], views: Sequence[View] = ()) -> None:
        """Take fields and views; without views the default ones. ParamsError if they do not fit."""
        declared = _checked_fields(fields)
        names = tuple(field.name for field in declared)
        if isinstance(views, (list, tuple)) and not views:
            default = zip((names, names[:1]), DEFAULT_SHARES, strict=True)
            views = [View(listed, share) for listed, share in default]
        object.__setattr__(self, "fields", declared)
        object.__setattr__(self, "views", _checked_views(views, names))

    def cohorts(self, m: int) -> tuple[int, ...]:
        """How many of the m cohorts each view has: the largest remainder, at least one each.

        Each view starts with one cohort. Each further one goes to the view whose m · share is the
        furthest above what it has, to the earlier one if two are equal. A share is the exact
        rational that the float is.
        """
        if m < len(self.views):
            raise ParamsError(
                f"m must be at least {len(self.views)} for {len(self.views)} views, got m = {m}: "
                "each view needs a cohort"
            )
        given = [1] * len(self.views)
        shares = [Fraction(view.share) for view in self.views]
        unit = math.lcm(*(share.denominator for share in shares))  # integers: exact, and fast
        lacking = [int(m * share * unit) - unit for share in shares]
        for _ in range(m - len(given)):
            view = lacking.index(max(lacking))
            given[view] += 1
            lacking[view] -= unit
        return tuple(given)

    def table(self, m: int) -> tuple[int, ...]:
        """The view of each cohort: the first view has the first cohorts, and so on."""
        return tuple(view for view, count in enumerate(self.cohorts(m)) for _ in range(count))

    def view_of(self, cohort: int, m: int) -> View:
        """The view of one of the m cohorts."""
        return self.views[self.table(m)[cohort]]

    def joint_view(self, first: str, second: str) -> int | None:
        """The view whose reports tell the joint table of two fields; None if none does.

        It has both, and no further field of strings, whose values cannot all be listed. Of several
        it is the one with the fewest fields.

        >>> views = Views((Field("a", "string"), Field("b", "string"), Field("c", "boolean")))
        >>> views.joint_view("a", "b"), views.joint_view("a", "c")
        (0, None)
        """
        strings = {field.name for field in self.fields if field.kind == "string"}
        serving = [
            (len(view.fields), place)
            for place, view in enumerate(self.views)
            if {first, second} <= set(view.fields)
            and strings.isdisjoint(set(view.fields) - {first, second})
        ]
        return min(serving)[1] if serving else None

    def encode(self, view: int, value: object) -> bytes:
        """The bytes that stand for a value in a view: a mapping from each field to its value.

        All fields are checked, in every view: whether a client reports does not depend on its
        cohort.
        """
        try:
            given = dict(value) if isinstance(value, Mapping) else {}
        except Exception:  # a mapping of the application may raise anything, with the value in it
            given = {}
        if given.keys() != {field.name for field in self.fields}:
            names = ", ".join(field.name for field in self.fields)
            raise EncodeError(f"value must be a mapping with the fields {names}")
        return self.encode_parts(
            view, {field.name: field.part(given[field.name]) for field in self.fields}
        )

    def encode_parts(self, view: int, parts: Mapping[str, bytes]) -> bytes:
        """The same from `Field.part` of each field; parts outside the view may be left out."""
        return frame(*(parts[name] for name in self.views[view].fields))


def views_of(fields: Sequence[Field] | None, views: Sequence[View] | None) -> Views | None:
    """The views of a collection with these fields; None if it has neither fields nor views."""
    if fields is None and views is None:
        return None
    if fields is None:
        raise ParamsError("views need fields: a list of rappor.Field")
    return Views(fields, () if views is None else views)


def _check_field(name: str, kind: str) -> None:
    if type(name) is not str or not FIELD_NAME.fullmatch(name):
        raise ParamsError(
            f"a field's name must be 1 to 32 of a-z, 0-9 and _, a letter first; got {show(name)}"
        )
    if type(kind) is not str or kind not in FIELD_KINDS:
        raise ParamsError(
            f"field {name}: kind must be one of {', '.join(FIELD_KINDS)}; got {show(kind)}"
        )


def _checked_fields(fields: Sequence[Field]) -> tuple[Field, ...]:
    if not isinstance(fields, (list, tuple)) or not MIN_FIELDS <= len(fields) <= MAX_FIELDS:
        raise ParamsError(f"fields must be a list of {MIN_FIELDS} to {MAX_FIELDS} fields")
    if not all(isinstance(field, Field) for field in fields):
        raise ParamsError(f"fields must be a list of rappor.Field, got {show(fields)}")
    if len({field.name for field in fields}) != len(fields):
        raise ParamsError("fields must have distinct names; one is given twice")
    return tuple(fields)


def _checked_views(views: Sequence[View], names: Sequence[str]) -> tuple[View, ...]:
    if not isinstance(views, (list, tuple)) or not all(isinstance(view, View) for view in views):
        raise ParamsError(f"views must be a list of rappor.View, got {show(views)}")
    for view in views:
        for name in view.fields:
            if name not in names:
                raise ParamsError(f"views: {show(name)} is not one of {', '.join(names)}")
    if len({frozenset(view.fields) for view in views}) != len(views):
        raise ParamsError("views must differ; two have the same fields")
    for name in names:
        if not any(name in view.fields for view in views):
            raise ParamsError(f"field {name} is in no view: remove it, or add a view with it")
    total = math.fsum(view.share for view in views)
    if abs(total - 1) > 1e-9:
        raise ParamsError(f"the shares of views must add up to 1, got {total:g}")
    return tuple(views)
