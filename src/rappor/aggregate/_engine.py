"""Which engine counts: machine code where numba is installed, numpy and Python where it is not."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar, cast

_Function = TypeVar("_Function", bound=Callable[..., Any])


@functools.cache
def load(name: str) -> ModuleType | None:
    """A module of this package that numba compiles, or None without numba."""
    try:
        importlib.import_module("numba")  # on its own: no error of ours looks like its absence
    except ImportError:
        return None
    return importlib.import_module(f"rappor.aggregate.{name}")


def compiled(function: _Function) -> _Function:
    """The function as machine code that runs without the interpreter's lock."""
    numba: Any = importlib.import_module("numba")
    try:
        fast = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # no folder to keep it in: each process compiles it again
        fast = numba.njit(nogil=True)(function)
    return cast("_Function", fast)
