"""Compiling with numba: machine code kept on disk where the system allows it.

Kept out of the modules that use it so that the choice is made in one place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

_Function = TypeVar("_Function", bound=Callable[..., Any])


def compiled(function: _Function) -> _Function:
    """The function as machine code that runs without the interpreter's lock."""
    try:
        fast: Any = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # nowhere to write: compile anew in each process
        fast = numba.njit(nogil=True)(function)
    return cast("_Function", fast)
