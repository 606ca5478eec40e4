"""The browser of tests, benchmarks and pictures: an installed Chromium. None is ever downloaded."""

import os
import shutil

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
NEEDED = f"one of {', '.join(BROWSERS)}, or CHROMIUM=PATH"


def chromium() -> str | None:
    """The path of the installed browser, or of the one that CHROMIUM names; None if none is."""
    named = os.environ.get("CHROMIUM")
    if named:
        return shutil.which(named)
    return next(filter(None, map(shutil.which, BROWSERS)), None)
