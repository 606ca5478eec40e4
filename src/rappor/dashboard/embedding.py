"""Charts in pages: one specification for light and one for dark, sent with their data once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rappor.charts.theme import Spec


def both(make: Callable[[str], Spec]) -> dict[str, Any]:
    """What the macro `chart` takes: the light specification, and what dark has different.

    >>> both(lambda theme: {"data": [1, 2], "config": theme})
    {'light': {'data': [1, 2], 'config': 'light'}, 'dark': {'config': 'dark'}}
    """
    light, dark = make("light"), make("dark")
    return {
        "light": light,
        "dark": {name: part for name, part in dark.items() if light.get(name) != part},
    }
