"""The engine that counts: machine code if numba is installed, else numpy and Python."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar, cast

_Function = TypeVar("_Function", bound=Callable[..., Any])


@functools.cache
def load(name: str) -> ModuleType | None:
    """A module of this package that numba compiles; None if numba is not installed."""
    try:
        importlib.import_module("numba")  # alone: an error in our module is not its absence
    except ImportError:
        return None
    return importlib.import_module(f"rappor.aggregate.{name}")


def compiled(function: _Function) -> _Function:
    """The function as machine code that runs without the interpreter's lock."""
    numba: Any = importlib.import_module("numba")
    try:
        fast = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # no folder for the cache: each process compiles it again
        fast = numba.njit(nogil=True)(function)
    return cast("_Function", fast)
