"""What a plan of two fields is asked for."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Literal

from rappor.errors import ParamsError
from rappor.planning.request import CHECKED_COLLECTIONS, Progress

OpenFields = Literal["first", "both", "none"]
DEFAULT_STRENGTH = 0.1


@dataclass(frozen=True, slots=True)
class AssociationRequest:
    """What a plan of two fields is asked for: the arguments of `rappor.plan` with `associate`.

    Attributes:
        epsilon_one: the largest ε of one report. If left out, the smallest that answers the
            question with these reports.
        epsilon_infinity: the largest ε of all reports on one tuple; 4 epsilon_one by default.
        reports: N. If left out, the number that the question needs.
        associate: how many values of each field are listed: (50, 10), or "50x10".
        strength: the share of clients whose first value decides the second.
        power: the chance with which the association must be found.
        alpha: the level of the test of independence.
        open_fields: which fields may hold unlisted values: "first", "both" or "none".
        max_bytes: the longest report that is acceptable.
        check: simulated collections to check the plan with; 0 for none.
        progress: called with a line of text now and then.
    """

    epsilon_one: float | None = None
    epsilon_infinity: float | None = None
    reports: int | None = None
    _: KW_ONLY
    associate: tuple[int, int] | str
    strength: float = DEFAULT_STRENGTH
    power: float = 0.8
    alpha: float = 0.05
    open_fields: OpenFields = "first"
    max_bytes: int = 128
    check: int = CHECKED_COLLECTIONS
    progress: Progress | None = field(default=None, repr=False, compare=False)


def table_of(text: str) -> tuple[int, int]:
    """The size of a table from text; ParamsError if it is not two numbers.

    >>> table_of("50x10")
    (50, 10)
    """
    rows, _, columns = text.lower().replace("×", "x").partition("x")
    if not (rows.strip().isdecimal() and columns.strip().isdecimal()):
        raise ParamsError(f"the size of a table must be two numbers such as 50x10, not {text!r}")
    return int(rows), int(columns)
