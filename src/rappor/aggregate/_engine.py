"""Which engine runs: machine code where numba is installed, numpy and Python where it is not."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar, cast

import numba


@functools.cache
def load(name: str) -> ModuleType | None:
    """A module of this package that is compiled by numba, or None without numba."""
    try:
        importlib.import_module(
            "numba"
        )  # by itself, so that no error of ours looks like its absence
    except ImportError:
        return None
    return importlib.import_module(f"rappor.aggregate.{name}")


_Function = TypeVar("_Function", bound=Callable[..., Any])


def compiled(function: _Function) -> _Function:
    """The function as machine code that runs without the interpreter's lock."""
    try:
        fast: Any = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # nowhere to write: compile anew in each process
        fast = numba.njit(nogil=True)(function)
    return cast("_Function", fast)
