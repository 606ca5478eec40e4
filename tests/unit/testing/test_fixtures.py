"""The fixtures: opt-in, apart from each other, and of use to a base install."""

from __future__ import annotations

import datetime
import subprocess
import sys
import tomllib
from pathlib import Path

from rappor.testing import ManualClock, fixtures

ROOT = Path(__file__).parents[3]
_OUTSIDE = "numpy scipy pytest rappor.client rappor.store rappor.collector rappor.aggregate"


def test_the_collector_needs_no_extra_no_pytest_and_no_client() -> None:
    code = (
        "import sys, rappor.testing; "
        f"print([name for name in '{_OUTSIDE}'.split() if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_no_project_loads_the_fixtures_without_asking() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "pytest11" not in project.get("entry-points", {})


def test_all_fixtures_begin_with_the_name_of_the_package() -> None:
    assert all(name.startswith("rappor_") for name in fixtures.__all__)


def test_a_manual_clock_stands_still_at_noon() -> None:
    clock = ManualClock(datetime.date(2026, 11, 16))
    assert clock.time() == clock.time() == 1_794_830_400.0
    clock.forward(seconds=43_199)
    assert clock.today() == datetime.date(2026, 11, 16)
    clock.forward(seconds=1)
    assert clock.today() == datetime.date(2026, 11, 17)
    assert abs((ManualClock().today() - datetime.datetime.now(datetime.UTC).date()).days) <= 1
