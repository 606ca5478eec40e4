"""Render specifications as SVG, PNG, HTML or JSON, without a network."""

from __future__ import annotations

import importlib
import json
from contextlib import suppress
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from rappor.charts.theme import Spec
from rappor.errors import MissingExtraError, ParamsError

FORMATS = (".svg", ".png", ".html", ".json")
VEGA_LITE = "5.20"  # the version that renders every specification
_SHARP = 2  # device pixels for each pixel of a PNG


def render(spec: Spec, path: str | PathLike[str]) -> Path:
    """Write a chart in the format of the file's ending: .svg, .png, .html or .json.

    An .html file contains its scripts; a .json file is the specification.
    """
    target = Path(path).expanduser()
    match target.suffix.lower():
        case ".svg":
            target.write_text(to_svg(spec), encoding="utf-8")
        case ".png":
            target.write_bytes(to_png(spec))
        case ".html":
            target.write_text(to_html(spec), encoding="utf-8")
        case ".json":
            target.write_text(to_json(spec), encoding="utf-8")
        case other:
            known = ", ".join(FORMATS)
            raise ParamsError(f"a chart's file must end in one of {known}, got {other!r}")
    return target


def to_json(spec: Spec) -> str:
    """The specification as JSON; NaN and ∞ are refused."""
    return json.dumps(spec, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def to_svg(spec: Spec) -> str:
    """The chart as an SVG document."""
    return str(_converter().vegalite_to_svg(spec, VEGA_LITE, allowed_base_urls=[]))


def to_png(spec: Spec) -> bytes:
    """The chart as a PNG image, at twice its size for sharp screens."""
    return bytes(_converter().vegalite_to_png(spec, VEGA_LITE, scale=_SHARP, allowed_base_urls=[]))


def to_html(spec: Spec) -> str:
    """The chart as one HTML page with all scripts inside."""
    return str(_converter().vegalite_to_html(spec, VEGA_LITE, bundle=True))


def _converter() -> Any:
    try:
        return importlib.import_module("vl_convert")
    except ImportError:
        raise MissingExtraError("charts", "analysis") from None


@dataclass(frozen=True, slots=True, eq=False)
class Chart:
    """A Vega-Lite specification that can be saved and shown."""

    spec: Spec = field(repr=False)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the chart as .svg, .png, .html or .json."""
        return render(self.spec, path)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = {
            "application/vnd.vegalite.v5+json": self.spec,
            "text/plain": self.spec["description"],
        }
        with suppress(MissingExtraError):  # a notebook that knows Vega-Lite still shows it
            bundle["image/svg+xml"] = to_svg(self.spec)
        return bundle
