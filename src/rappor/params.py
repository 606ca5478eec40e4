"""Params: the six numbers of a RAPPOR collection, validated once and then trusted.

§2 and §3 of the paper: k bits, h hashes, m cohorts; f is the permanent, (p, q) the instantaneous
randomized response. A probability is exactly the rational number of its float (`Params.exact`).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from rappor import files, formats
from rappor.checks import did_you_mean, is_real, show, whole
from rappor.errors import ParamsError
from rappor.typing import Kind

MAX_K = 4096
MAX_H = 16
MAX_M = 1024
MAX_WHOLE = {"k": MAX_K, "h": MAX_H, "m": MAX_M}


def _probability(name: str, value: Any) -> float:
    upper = "f < 1" if name == "f" else f"{name} <= 1"
    expected = f"{name} must be a number with 0 <= {upper}, got {show(value)}"
    if not is_real(value):
        raise ParamsError(expected)
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ParamsError(expected) from None
    if not (math.isfinite(number) and 0 <= number <= 1):
        raise ParamsError(expected)
    if number != value:
        raise ParamsError(
            f"{name} must be a number that a float holds exactly, got {show(value)}: "
            f"write {name} = {number!r} if the nearest float is meant"
        )
    if name == "f" and number == 1:
        raise ParamsError("f must satisfy 0 <= f < 1, got 1.0: f = 1 carries no information")
    return number + 0.0  # turns -0.0 into 0.0, so that equal numbers have equal digests


def check_number(name: str, value: Any) -> int | float:
    """One of the six numbers within its own range, or ParamsError.

    `Params` checks how the six fit together.
    """
    if name in MAX_WHOLE:
        return whole(name, value, 1, MAX_WHOLE[name])
    return _probability(name, value)


class Exact(NamedTuple):
    """The three probabilities as exact rationals; sampling and ε both use these."""

    f: Fraction
    p: Fraction
    q: Fraction


@dataclass(frozen=True, slots=True)
class Params:
    """The parameters of one collection.

    Attributes:
        k: bits in a report, 1 to 4096.
        h: hash functions, 1 to 16, at most k.
        m: cohorts, 1 to 1024.
        f: permanent randomized response: share of bits replaced by coin flips, 0 <= f < 1.
        p: the probability that a 0 of the memoized filter is reported as 1.
        q: the probability that a 1 of the memoized filter is reported as 1; 0 <= p < q <= 1.

    f = 0 together with p = 0 or q = 1 would reveal true bits and is refused.

    >>> Params(k=128, h=2, m=16, f=0.5, p=0.5, q=0.75).exact.q
    Fraction(3, 4)
    """

    k: int
    h: int
    m: int
    f: float
    p: float
    q: float

    def __post_init__(self) -> None:
        """Validate and normalise (ints to int, -0.0 to 0.0), or raise ParamsError."""
        for name in FIELDS:
            object.__setattr__(self, name, check_number(name, getattr(self, name)))
        if self.h > self.k:
            raise ParamsError(f"h must be at most k = {self.k}, got h = {self.h}")
        if not self.p < self.q:
            raise ParamsError(
                f"p and q must satisfy 0 <= p < q <= 1, got p = {self.p!r}, q = {self.q!r}"
                + (": p = q carries no information" if self.p == self.q else "")
            )
        if self.f == 0 and (self.p == 0 or self.q == 1):
            raise ParamsError(
                f"f = 0 needs 0 < p and q < 1, got p = {self.p!r}, q = {self.q!r}: "
                "some reported bits would be true bits, without any privacy"
            )

    @property
    def exact(self) -> Exact:
        """f, p and q as exact rationals."""
        return Exact(Fraction(self.f), Fraction(self.p), Fraction(self.q))

    @property
    def digest(self) -> str:
        """SHA-256, in hex, of the six exact numbers; it labels everything made with them.

        >>> Params(8, 1, 1, 0.5, 0.5, 0.75).digest == Params(8, 1, 1, 1 / 2, 1 / 2, 3 / 4).digest
        True
        """
        f, p, q = self.exact
        text = f"rappor-params-v1\nk={self.k}\nh={self.h}\nm={self.m}\n" + "".join(
            f"{name}={value.numerator}/{value.denominator}\n"
            for name, value in (("f", f), ("p", p), ("q", q))
        )
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    @classmethod
    def preset(cls, name: str) -> Params:
        """The parameters of one of the paper's experiments; `rappor.params.PRESETS` has the names.

        >>> Params.preset("chrome")
        Params(k=128, h=2, m=32, f=0.75, p=0.5, q=0.75)
        """
        return preset(name).params

    @classmethod
    def from_dict(cls, fields_given: Mapping[str, Any]) -> Params:
        """Params from a mapping with exactly the keys k, h, m, f, p, q."""
        if not isinstance(fields_given, Mapping):
            raise ParamsError(
                f"params must be an object with {', '.join(FIELDS)}, got {show(fields_given)}"
            )
        missing = [name for name in FIELDS if name not in fields_given]
        unknown = [show(name) for name in fields_given if name not in FIELDS]
        if missing or unknown:
            raise ParamsError(
                f"params must have exactly {', '.join(FIELDS)}"
                + (f"; missing: {', '.join(missing)}" if missing else "")
                + (f"; unknown: {', '.join(unknown)}" if unknown else "")
            )
        return cls(**fields_given)

    def to_dict(self) -> dict[str, int | float]:
        """The six numbers by name, in the order k, h, m, f, p, q."""
        return {name: getattr(self, name) for name in FIELDS}

    @classmethod
    def from_csv(cls, path: str | PathLike[str]) -> Params:
        """Read google/rappor's params.csv (header k,h,m,p,q,f and one row)."""
        text = formats.read_text(path)
        try:
            return cls.from_dict(formats.parse_csv(text))
        except ParamsError as error:
            raise ParamsError(f"{path}: {error}") from None

    def to_csv(self, path: str | PathLike[str]) -> None:
        """Write google/rappor's params.csv; reading it back gives equal Params."""
        files.write_text(Path(path).expanduser(), formats.format_csv(self.to_dict()))

    @classmethod
    def from_json(cls, text: str) -> Params:
        """Params from a JSON object; NaN, Infinity, repeated and unknown keys are refused."""
        return cls.from_dict(formats.parse_json(text))

    def to_json(self) -> str:
        """A JSON object with full-precision numbers."""
        return formats.format_json(self.to_dict())

    @classmethod
    def from_toml(cls, text: str) -> Params:
        """Params from a TOML document with exactly the six keys."""
        return cls.from_dict(formats.parse_toml(text))

    def to_toml(self) -> str:
        """A TOML document with full-precision numbers."""
        return formats.format_toml(self.to_dict())


FIELDS = tuple(field.name for field in fields(Params))


def check_params(params: object) -> None:
    """Refuse what is not Params."""
    if not isinstance(params, Params):
        raise ParamsError(f"params must be rappor.Params, got {type(params).__name__}")


class Preset(NamedTuple):
    """A named parameter set and the kind of value it was made for."""

    params: Params
    kind: Kind
    about: str


PRESETS: dict[str, Preset] = {
    "windows": Preset(
        Params(128, 2, 8, 0.5, 0.5, 0.75), "string", "Windows process names (paper §5.3, Table 2)"
    ),
    "chrome": Preset(
        Params(128, 2, 32, 0.75, 0.5, 0.75), "string", "Chrome homepages (paper §5.4, Figure 6)"
    ),
    "exponential": Preset(
        Params(128, 2, 16, 0.5, 0.5, 0.75), "string", "exponential strings (paper §5.2, Table 1)"
    ),
    "normal": Preset(
        Params(100, 1, 1, 0.0, 0.5, 0.75), "category", "Normal(50, 10) numbers (paper §5.1)"
    ),
    "life-of-a-report": Preset(
        Params(256, 4, 1, 0.5, 0.5, 0.75), "string", "one report drawn bit by bit (paper Figure 1)"
    ),
}


def preset(name: str) -> Preset:
    """The named preset with its kind, or ParamsError listing the names."""
    try:
        return PRESETS[name]
    except (KeyError, TypeError, ValueError):
        names = ", ".join(PRESETS)
        hint = did_you_mean(name, PRESETS) if isinstance(name, str) else ""
        raise ParamsError(f"preset must be one of {names}; got {show(name)}{hint}") from None
