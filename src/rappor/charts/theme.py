"""Colours and fonts of all charts and pages, light and dark, safe for colour-blind readers."""

from __future__ import annotations

from typing import Any

from rappor.checks import show
from rappor.errors import ParamsError

Spec = dict[str, Any]

FONT = 'system-ui, "Segoe UI", Roboto, "Noto Sans", sans-serif'
MONO = 'ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace'
SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"

# name -> (light, dark)
TOKENS: dict[str, tuple[str, str]] = {
    "bg": ("#FFFFFF", "#11161C"),
    "surface": ("#F6F7F9", "#191F27"),
    "raised": ("#FFFFFF", "#1F262F"),
    "line": ("#E1E5EA", "#2B343F"),
    "edge": ("#7F8A97", "#75818F"),
    "text": ("#1B2129", "#E8ECF1"),
    "muted": ("#56606C", "#9DA8B5"),
    "accent": ("#0B5CAD", "#79B8FF"),
    "on-accent": ("#FFFFFF", "#0B1623"),
    "select": ("#E7F0FA", "#1B2E44"),
    "bar": ("#7DB0E4", "#2F659E"),
    "bar-edge": ("#0B62B8", "#6CB4FF"),
    "threshold": ("#A8400A", "#F5A066"),
    "undetected": ("#EEF0F3", "#232B35"),
    "ok": ("#1A7340", "#7FD6A0"),
    "ok-bg": ("#E8F5EC", "#12281C"),
    "warn": ("#7A4F00", "#F0C36A"),
    "warn-bg": ("#FFF4DC", "#2B2210"),
    "bad": ("#A8231B", "#FF9C94"),
    "bad-bg": ("#FDECEA", "#301716"),
    "c1": ("#0B62B8", "#6CB4FF"),
    "c2": ("#C8510A", "#F08A3C"),
    "c3": ("#3D9F8C", "#86EBCB"),
    "c4": ("#551772", "#8B6CE6"),
    "c5": ("#AB79F5", "#C23E86"),
    "s1": ("#F6F7F9", "#191F27"),
    "s2": ("#BCD6F0", "#21456B"),
    "s3": ("#7DB0E4", "#2F659E"),
    "s4": ("#2F7CC7", "#4F93DB"),
    "s5": ("#0A3F77", "#B5D9FF"),
    "d1": ("#0B4F94", "#8CC4FF"),
    "d2": ("#8DBBE8", "#35618F"),
    "d3": ("#F4F5F7", "#1C232C"),
    "d4": ("#F4F5F7", "#1C232C"),
    "d5": ("#F2B48A", "#9A5A2C"),
    "d6": ("#A8400A", "#FFB27A"),
}
THEMES = ("light", "dark")


def colours(theme: str = "light") -> dict[str, str]:
    """Every token's colour in one theme.

    >>> colours("dark")["bg"]
    '#11161C'
    """
    if theme not in THEMES:
        raise ParamsError(f"theme must be light or dark, got {show(theme)}")
    return {name: pair[THEMES.index(theme)] for name, pair in TOKENS.items()}


def config(theme: str = "light") -> Spec:
    """The Vega-Lite configuration of one theme."""
    colour = colours(theme)
    return {
        "background": colour["bg"],
        "font": FONT,
        "padding": 12,
        "view": {"stroke": None},
        "axis": {
            "labelColor": colour["muted"],
            "labelFontSize": 12,
            "titleColor": colour["muted"],
            "titleFontSize": 12,
            "titleFontWeight": 400,
            "gridColor": colour["line"],
            "domainColor": colour["edge"],
            "tickColor": colour["edge"],
            "labelFlush": False,
        },
        "title": {
            "anchor": "start",
            "color": colour["text"],
            "fontSize": 16,
            "fontWeight": 700,
            "subtitleColor": colour["muted"],
            "subtitleFontSize": 13,
            "subtitlePadding": 6,
            "offset": 12,
        },
        "text": {"color": colour["text"], "fontSize": 12},
    }


def whole_chart(parts: Spec, title: str, subtitle: list[str], theme: str) -> Spec:
    """A complete specification: the schema, words above, and the theme."""
    return {
        "$schema": SCHEMA,
        "description": " ".join([f"{title}.", *subtitle]),
        "title": {"text": title, "subtitle": subtitle, "frame": "bounds"},
        **parts,
        "config": config(theme),
    }


def message(title: str, text: str, theme: str = "light") -> Spec:
    """A chart that draws nothing and says why."""
    box = colours(theme)
    parts: Spec = {
        "width": 640,
        "height": 72,
        "data": {"values": [{"text": text}]},
        "layer": [
            {
                "mark": {"type": "rect", "color": box["surface"]},
                "encoding": {"x": {"value": 0}, "x2": {"value": 640}},
            },
            {
                "mark": {"type": "text", "align": "left", "fontSize": 14, "baseline": "middle"},
                "encoding": {
                    "text": {"field": "text"},
                    "x": {"value": 16},
                    "y": {"value": 36},
                },
            },
        ],
    }
    return whole_chart(parts, title, [], theme)
