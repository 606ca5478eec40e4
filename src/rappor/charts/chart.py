"""A chart that notebooks show and that can be saved."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from rappor.charts.render import render, to_svg
from rappor.charts.theme import Spec
from rappor.errors import MissingExtraError


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
