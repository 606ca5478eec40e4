"""Which engine runs: machine code where numba is installed, numpy and Python where it is not."""

from __future__ import annotations

import functools
import importlib
from types import ModuleType


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
