"""From counts back to strings and frequencies (paper §4)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rappor.decoding.association import Association as Association
    from rappor.decoding.candidates import Candidates as Candidates
    from rappor.decoding.categories import decode_basic as decode_basic
    from rappor.decoding.decode import decode as decode
    from rappor.decoding.design import Design as Design
    from rappor.decoding.design import build_design as build_design
    from rappor.decoding.diagnosis import Diagnosis as Diagnosis
    from rappor.decoding.diagnosis import diagnose as diagnose
    from rappor.decoding.differences import Compared as Compared
    from rappor.decoding.histogram import Histogram as Histogram
    from rappor.decoding.mapfile import read_map as read_map
    from rappor.decoding.options import Correction as Correction
    from rappor.decoding.options import Method as Method
    from rappor.decoding.ordinal import decode_ordinal as decode_ordinal
    from rappor.decoding.own_decoder import Decoder as Decoder
    from rappor.decoding.own_decoder import DecodeTask as DecodeTask
    from rappor.decoding.own_decoder import Estimate as Estimate
    from rappor.decoding.quality import Check as Check
    from rappor.decoding.result import Decoded as Decoded
    from rappor.decoding.result import Row as Row
    from rappor.decoding.smoothing import project_simplex as project_simplex
    from rappor.decoding.smoothing import smooth as smooth
    from rappor.decoding.strings import Finder as Finder

# name -> the module that defines it; loaded when asked for, because `options` needs no numpy. A
# module and a name in it must differ: `compare` is at `rappor.compare`.
_HOMES = {
    "Association": "association",
    "Candidates": "candidates",
    "Check": "quality",
    "Compared": "differences",
    "Correction": "options",
    "Decoded": "result",
    "DecodeTask": "own_decoder",
    "Decoder": "own_decoder",
    "Design": "design",
    "Diagnosis": "diagnosis",
    "Estimate": "own_decoder",
    "Finder": "strings",
    "Histogram": "histogram",
    "Method": "options",
    "Row": "result",
    "build_design": "design",
    "decode_basic": "categories",
    "decode_ordinal": "ordinal",
    "diagnose": "diagnosis",
    "project_simplex": "smoothing",
    "read_map": "mapfile",
    "smooth": "smoothing",
}
__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    """Load a name from the module that defines it."""
    if name not in _HOMES:
        raise AttributeError(f"module 'rappor.decoding' has no attribute {name!r}")
    return getattr(importlib.import_module(f"rappor.decoding.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_HOMES)
