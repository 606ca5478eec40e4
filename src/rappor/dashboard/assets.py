"""Scripts and styles: the package's files, the theme's colours, and Vega's bundle.

The package holds no third-party script. The bundle comes from vl-convert, is made once, and is
cached in the data folder under its versions.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import hashlib
import importlib
import importlib.metadata
import threading
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from rappor.charts.render import VEGA_LITE
from rappor.charts.theme import FONT, MONO, colours
from rappor.errors import MissingExtraError
from rappor.files import write_bytes

TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
TOKENS, VEGA = "tokens.css", "vega.js"


class Asset(NamedTuple):
    """A file to send, plain and compressed."""

    body: bytes
    packed: bytes
    content_type: str


def tokens_css() -> str:
    """The theme's colours and fonts as custom properties: light, dark, or the browser's choice.

    >>> "--bar-edge: #0B62B8;" in tokens_css()
    True
    """
    light, dark = ("\n".join(_properties(theme)) for theme in ("light", "dark"))
    return (
        f":root {{\n{light}\n  --font: {FONT};\n  --mono: {MONO};\n  color-scheme: light;\n}}\n"
        f"@media (prefers-color-scheme: dark) {{\n:root:not([data-theme=light]) {{\n{dark}\n"
        f"  color-scheme: dark;\n}}\n}}\n"
        f":root[data-theme=dark] {{\n{dark}\n  color-scheme: dark;\n}}\n"
        f"@media print {{\n:root, :root[data-theme=dark], :root:not([data-theme=light]) {{\n"
        f"{light}\n  color-scheme: light;\n}}\n}}\n"
    )


def _properties(theme: str) -> list[str]:
    return [f"  --{name}: {value};" for name, value in colours(theme).items()]


class Assets:
    """Everything under /static/, read at the start. Thread-safe."""

    def __init__(self, cache: Path) -> None:
        """Read the files of the package; the bundle is kept in `cache`."""
        self._cache = cache
        self._made: dict[str, Asset] = {TOKENS: _asset(TOKENS, tokens_css().encode())}
        for file in resources.files("rappor.dashboard").joinpath("static").iterdir():
            if Path(file.name).suffix in TYPES:
                self._made[file.name] = _asset(file.name, file.read_bytes())
        self._marks = {
            name: hashlib.sha256(asset.body).hexdigest()[:12] for name, asset in self._made.items()
        }
        self._marks[VEGA] = _vega_version()
        self._making = threading.Lock()

    @property
    def names(self) -> list[str]:
        """Everything that is served."""
        return sorted(self._marks)

    def address(self, name: str) -> str:
        """The address of a file; it changes with the file, so browsers may cache it permanently."""
        return f"/static/{name}?v={self._marks[name]}"

    def get(self, name: str) -> Asset | None:
        """A file, or None; makes Vega's bundle if it is missing."""
        if name == VEGA:
            return self._vega()
        return self._made.get(name)

    def prepare(self) -> None:
        """Make the bundle in the background, before a page asks for it."""
        threading.Thread(target=self._vega, daemon=True).start()

    def _vega(self) -> Asset:
        with self._making:
            if VEGA not in self._made:
                file = self._cache / f"vega-{_vega_version()}.js"
                try:
                    body = file.read_bytes()
                except OSError:
                    body = _bundle().encode()
                    _keep(file, body)
                self._made[VEGA] = _asset(VEGA, body)
            return self._made[VEGA]


def _asset(name: str, body: bytes) -> Asset:
    return Asset(body, gzip.compress(body, 9, mtime=0), TYPES[Path(name).suffix])


@functools.cache
def _vega_version() -> str:
    try:
        return f"{VEGA_LITE}-{importlib.metadata.version('vl-convert-python')}"
    except importlib.metadata.PackageNotFoundError:
        raise MissingExtraError("dashboard", "analysis") from None


def _bundle() -> str:
    converter: Any = importlib.import_module("vl_convert")
    return str(converter.javascript_bundle(vl_version=VEGA_LITE))


def _keep(file: Path, body: bytes) -> None:
    """Write the cache atomically; if the folder is read-only, the bundle is made at each start."""
    with contextlib.suppress(OSError):
        file.parent.mkdir(mode=0o700, exist_ok=True)
        write_bytes(file, body)
