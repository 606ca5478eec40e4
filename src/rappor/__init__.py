"""RAPPOR: statistics about users without data about any user.

Erlingsson, Pihur, Korolova: RAPPOR: Randomized Aggregatable Privacy-Preserving Ordinal Response,
CCS 2014. The base install uses the standard library only; names that need an extra load lazily and
say which one to install.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from rappor import mechanism, privacy
from rappor._version import __version__
from rappor.errors import (
    DecodeError,
    EncodeError,
    EntropyError,
    LedgerError,
    MissingExtraError,
    ParamsError,
    RapporError,
    StoreError,
    WireError,
)
from rappor.mechanism import Encoder, OneTime, Ranges, Report, bloom_positions, new_secret
from rappor.params import Params

__all__ = [
    "DecodeError",
    "EncodeError",
    "Encoder",
    "EntropyError",
    "LedgerError",
    "MissingExtraError",
    "OneTime",
    "Params",
    "ParamsError",
    "Ranges",
    "RapporError",
    "Report",
    "StoreError",
    "WireError",
    "__version__",
    "bloom_positions",
    "mechanism",
    "new_secret",
    "privacy",
]

# name -> (module that defines it, extra, the packages which that extra brings)
_LAZY = {"decode": ("rappor.decoding.decode", "analysis", ("numpy", "scipy"))}


def __getattr__(name: str) -> Any:
    """Load a name that needs an extra, or say how to install it."""
    if name not in _LAZY:
        raise AttributeError(f"module 'rappor' has no attribute {name!r}")
    module, extra, packages = _LAZY[name]
    if any(importlib.util.find_spec(package) is None for package in packages):
        raise MissingExtraError(name, extra)
    if importlib.util.find_spec(module) is None:
        raise AttributeError(f"rappor {__version__} has no {name} yet")
    return getattr(importlib.import_module(module), name)
