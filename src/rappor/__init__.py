"""RAPPOR: statistics about users without data about any user.

Erlingsson, Pihur, Korolova: RAPPOR: Randomized Aggregatable Privacy-Preserving Ordinal Response,
CCS 2014. The base install uses the standard library only; names that need an extra load lazily and
say which one to install.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

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
from rappor.mechanism import (
    Encoder,
    Field,
    OneTime,
    Ranges,
    Report,
    View,
    bloom_positions,
    new_secret,
)
from rappor.params import Params

if TYPE_CHECKING:
    from rappor import aggregate as aggregate
    from rappor import attack as attack
    from rappor import charts as charts
    from rappor import decoding as decoding
    from rappor import planning as planning
    from rappor import simulate as simulate
    from rappor.aggregate.counts import Counts as Counts
    from rappor.aggregate.pair_counts import PairCounts as PairCounts
    from rappor.client.client import Client as Client
    from rappor.collection import Collection as Collection
    from rappor.decoding.associate import associate as associate
    from rappor.decoding.association import Association as Association
    from rappor.decoding.compare import compare as compare
    from rappor.decoding.decode import decode as decode
    from rappor.decoding.diagnosis import diagnose as diagnose
    from rappor.decoding.histogram import Histogram as Histogram
    from rappor.decoding.result import Decoded as Decoded
    from rappor.decoding.smoothing import smooth as smooth
    from rappor.planning.plan import plan as plan
    from rappor.simulate.populations import Population as Population
    from rappor.workspace import Workspace as Workspace
    from rappor.workspace import open as open

__all__ = [
    "Association",
    "Client",
    "Collection",
    "Counts",
    "DecodeError",
    "Decoded",
    "EncodeError",
    "Encoder",
    "EntropyError",
    "Field",
    "Histogram",
    "LedgerError",
    "MissingExtraError",
    "OneTime",
    "PairCounts",
    "Params",
    "ParamsError",
    "Population",
    "Ranges",
    "RapporError",
    "Report",
    "StoreError",
    "View",
    "WireError",
    "Workspace",
    "__version__",
    "aggregate",
    "associate",
    "attack",
    "bloom_positions",
    "charts",
    "compare",
    "decode",
    "decoding",
    "diagnose",
    "mechanism",
    "new_secret",
    "open",
    "plan",
    "planning",
    "privacy",
    "simulate",
    "smooth",
]

# name -> (module that is it or defines it, what it needs, which the analysis extra brings)
_NUMPY = ("numpy",)
_LAZY = {
    "Association": ("rappor.decoding.association", ("numpy", "scipy")),
    "Client": ("rappor.client.client", ()),
    "Collection": ("rappor.collection", ()),
    "Counts": ("rappor.aggregate.counts", _NUMPY),
    "Decoded": ("rappor.decoding.result", _NUMPY),
    "Histogram": ("rappor.decoding.histogram", _NUMPY),
    "PairCounts": ("rappor.aggregate.pair_counts", _NUMPY),
    "Population": ("rappor.simulate.populations", _NUMPY),
    "Workspace": ("rappor.workspace", ("numpy", "scipy")),
    "aggregate": ("rappor.aggregate", _NUMPY),
    "associate": ("rappor.decoding.associate", ("numpy", "scipy")),
    "attack": ("rappor.attack", ("numpy", "scipy")),
    "charts": ("rappor.charts", ()),
    "compare": ("rappor.decoding.compare", ("numpy", "scipy")),
    "decode": ("rappor.decoding.decode", ("numpy", "scipy")),
    "decoding": ("rappor.decoding", ("numpy", "scipy")),
    "diagnose": ("rappor.decoding.diagnosis", ("numpy", "scipy")),
    "open": ("rappor.workspace", ("numpy", "scipy")),
    "plan": ("rappor.planning.plan", ("numpy", "scipy")),
    "planning": ("rappor.planning", ("numpy", "scipy")),
    "simulate": ("rappor.simulate", _NUMPY),
    "smooth": ("rappor.decoding.smoothing", ("numpy", "scipy")),
}


def __getattr__(name: str) -> Any:
    """Load a name that needs an extra, or say how to install it."""
    if name not in _LAZY:
        raise AttributeError(f"module 'rappor' has no attribute {name!r}")
    module, packages = _LAZY[name]
    if any(importlib.util.find_spec(package) is None for package in packages):
        raise MissingExtraError(name, "analysis")
    found: Any = importlib.import_module(module)
    if module != f"rappor.{name}":
        found = getattr(found, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
