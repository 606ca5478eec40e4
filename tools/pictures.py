"""`make pictures`: make the pictures of README and the documentation site from the real product.

    flow                  the life of a report, drawn by tools/flow.py
    results, trends       pages of a real demo, in a real Chromium
    demo                  what that demo printed: the first block of docs/demo.md
    life-of-a-report ...  one figure of each experiment of the paper, as `rappor reproduce` draws it

Each picture is there in light and in dark. docs/pictures/made-from.json has a digest of what each
was made from, and a test fails when that has changed since. Only pictures that are out of date are
made again, or those that are named; `--all` makes all.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "rappor"
PICTURES = ROOT / "docs" / "pictures"
MADE_FROM = PICTURES / "made-from.json"
DEMO_PAGE = ROOT / "docs" / "demo.md"
SCHEMES = ("light", "dark")
PAGES = {  # by the name of the picture
    "results": "/collections/homepage",
    "trends": "/collections/homepage/trends",
}
FIGURES = {  # by the name of the experiment, which is the picture's too
    "life-of-a-report": "life-of-a-report",
    "recall-precision": "recall-precision",
    "learnable": "learnable-lines",
    "normal": "normal-shape",
    "exponential": "exponential-population",
    "windows": "windows-estimates",
    "chrome": "chrome-top",
    "fdr": "fdr-curves",
    "posterior": "posterior-curves",
}
NAMES = ("flow", "demo", *PAGES, *FIGURES)
DEMO = ("demo/*.py", "cli/demo_output.py")
PAGE = ("dashboard/templates/*.html", "dashboard/static/*", "charts/*.py")
FOLLOWED = ("attack", "charts", "experiments")  # packages whose modules are part of a figure
SIZE = {"width": 1280, "height": 1000}
PATIENCE = 600_000  # milliseconds: ends what hangs
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
DRAWN = "() => [...document.querySelectorAll('figure[data-chart]')].every((f) => f.dataset.drawn)"


def files(name: str) -> set[str]:
    """The files that a picture has in docs/pictures."""
    if name == "demo":
        return set()
    return {f"{name}-{scheme}.{'png' if name in PAGES else 'svg'}" for scheme in SCHEMES}


def digest(name: str) -> str:
    """Of the files that a picture is made from, and of the decoder's version."""
    decoder = (PACKAGE / "decoding" / "options.py").read_text(encoding="utf-8")
    version = re.search(r"^DECODER_VERSION = (\d+)$", decoder, re.MULTILINE)
    if version is None:
        raise SystemExit("decoding/options.py has no DECODER_VERSION")
    found = hashlib.sha256(version[0].encode())
    for path in sorted(set(_sources(name))):
        found.update(path.relative_to(ROOT).as_posix().encode() + b"\0")
        found.update(path.read_bytes() + b"\0")
    return found.hexdigest()


def _sources(name: str) -> Iterator[Path]:
    if name == "flow":
        yield from (ROOT / "tools" / "flow.py", PACKAGE / "charts" / "theme.py")
        yield PACKAGE / "charts" / "numbers.py"
    elif name in FIGURES:
        folder = PACKAGE / "experiments" / name.replace("-", "_")
        yield from _imported(folder.glob("*.py"))
    else:
        patterns = DEMO if name == "demo" else (*PAGE, f"dashboard/{name}/*.py")
        for pattern in patterns:
            yield from (path for path in PACKAGE.glob(pattern) if path.is_file())


def _imported(paths: Iterable[Path]) -> set[Path]:
    """Modules, and those of the followed packages that they import, directly or not."""
    found: set[Path] = set()
    waiting = list(paths)
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                parts = node.module.split(".")
                module = PACKAGE.joinpath(*parts[1:]).with_suffix(".py")
                if len(parts) > 2 and parts[1] in FOLLOWED and module.exists():
                    waiting.append(module)
    return found


def known() -> dict[str, str]:
    """The digests of the pictures as they were made."""
    if not MADE_FROM.exists():
        return {}
    digests: dict[str, str] = json.loads(MADE_FROM.read_text(encoding="utf-8"))
    return digests


def stale() -> list[str]:
    """The pictures that are missing, or show what has changed since."""
    there, made = {path.name for path in PICTURES.glob("*")}, known()
    return [name for name in NAMES if files(name) - there or made.get(name) != digest(name)]


def make(names: Collection[str]) -> None:
    """Make the named pictures."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="rappor-pictures-") as temporary:
        if "flow" in names:
            draw_flow(PICTURES)
        if {"demo", *PAGES} & set(names):
            _show_demo(Path(temporary) / "demo", names)
        figures = [name for name in FIGURES if name in names]
        if figures:
            output = Path(temporary) / "paper"
            _rappor("reproduce", *figures, "--output", output)
            take_figures(figures, output)
    note_made(names)


def note_made(names: Collection[str]) -> None:
    """Write what the named pictures were made from."""
    digests = {
        name: digest(name) if name in names else old
        for name, old in ((name, known().get(name, "")) for name in NAMES)
    }
    MADE_FROM.write_text(json.dumps(digests, indent=2) + "\n", encoding="utf-8")


def draw_flow(folder: Path) -> None:
    """Draw the life of a report."""
    import flow

    for scheme in SCHEMES:
        (folder / f"flow-{scheme}.svg").write_text(flow.draw(scheme), encoding="utf-8")


def take_figures(names: Iterable[str], output: Path) -> None:
    """Take one figure of each experiment from the folder of `rappor reproduce`."""
    for name in names:
        for scheme, ending in zip(SCHEMES, (".svg", "-dark.svg"), strict=True):
            drawn = (output / name / f"{FIGURES[name]}{ending}").read_text(encoding="utf-8")
            # Vega writes 15 digits; no screen shows more than two after the point.
            short = re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", drawn)
            (PICTURES / f"{name}-{scheme}.svg").write_text(short + "\n", encoding="utf-8")


def _show_demo(kept: Path, names: Collection[str]) -> None:
    """Run a demo; keep what it prints, and photograph its pages."""
    printed = _rappor("demo", "--no-serve", "--keep", kept)
    if "demo" in names:
        text = DEMO_PAGE.read_text(encoding="utf-8")
        DEMO_PAGE.write_text(with_output(text, printed), encoding="utf-8")
    pages = [name for name in PAGES if name in names]
    if not pages:
        return
    options = ("--data", kept / "data", "--collections", kept / "collections", "--port", "0")
    served = subprocess.Popen(
        [sys.executable, "-m", "rappor", "dashboard", *options], stderr=subprocess.PIPE, text=True
    )
    try:
        address = _address(served)
        link = _rappor("access", "link", "you", "--role", "analyst", "--data", kept / "data")
        _photograph(address, re.search(r"/login\?link=\S+", link)[0], pages)  # type: ignore[index]
    finally:
        served.terminate()
        served.wait()


def with_output(page: str, printed: str) -> str:
    """A page whose first block of text is what a command printed."""
    before, fence, rest = page.partition("```text\n")
    return f"{before}{fence}{printed.strip()}\n```{rest.partition('```')[2]}"


def _rappor(*words: str | Path) -> str:
    """Run a command; its progress is shown, and what it prints is returned."""
    done = subprocess.run(
        [sys.executable, "-m", "rappor", *words], check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout


def _address(served: subprocess.Popen[str]) -> str:
    """Where a dashboard listens, from its log."""
    assert served.stderr is not None
    for line in served.stderr:
        found = re.search(r'"dashboard-listening".*"port": ?(\d+)', line)
        if found:
            return f"http://127.0.0.1:{found[1]}"
    raise SystemExit("the dashboard ended")


def _photograph(address: str, login: str, names: Iterable[str]) -> None:
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, (os.environ.get("CHROMIUM", ""), *BROWSERS))), None)
    if path is None:
        raise SystemExit(f"pictures need one of {', '.join(BROWSERS)}, or CHROMIUM=PATH")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        context: Any = browser.new_context(viewport=SIZE, reduced_motion="reduce")
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.goto(f"{address}{login}")
        page.get_by_role("button", name="Log in").click()
        for name in names:
            for scheme in SCHEMES:
                page.emulate_media(color_scheme=scheme)
                page.goto(f"{address}{PAGES[name]}")
                page.wait_for_selector("#state[data-state='ready']", state="attached")
                page.wait_for_function(DRAWN)
                page.screenshot(path=PICTURES / f"{name}-{scheme}.png")
        browser.close()


def main() -> None:
    """Make the pictures that are out of date, or those that are named."""
    parser = argparse.ArgumentParser(description="Make the pictures of README and the site.")
    parser.add_argument("name", nargs="*", choices=[*NAMES, []], help="by default what is stale")
    parser.add_argument("--all", action="store_true", help="make all of them")
    given = parser.parse_args()
    names = list(NAMES) if given.all else given.name or stale()
    if not names:
        print("All pictures are up to date.", file=sys.stderr)
        return
    print(f"Making {', '.join(names)}", file=sys.stderr)
    make(names)


if __name__ == "__main__":
    main()
