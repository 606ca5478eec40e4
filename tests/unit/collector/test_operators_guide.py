"""The operator's guide names every option, event and metric; a new one cannot be forgotten."""

import argparse
import re
from pathlib import Path

import pytest

from rappor.cli import collect, serve
from rappor.collector.metrics import Metrics
from rappor.collector.settings import DRAIN_SECONDS, MAX_HEADER

ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "docs" / "operate.md").read_text(encoding="utf-8")
SOURCES = "\n".join(
    file.read_text(encoding="utf-8") for file in (ROOT / "src/rappor/collector").glob("*.py")
)


def options() -> list[str]:
    verbs = argparse.ArgumentParser().add_subparsers()
    both = [*collect.register(verbs)._actions, *serve.register(verbs)._actions]
    found = dict.fromkeys(option for action in both for option in action.option_strings)
    return [option for option in found if option not in ("-h", "--help", "--json")]


@pytest.mark.parametrize("option", options())
def test_every_option_is_in_the_guide(option: str) -> None:
    assert f"{option} " in GUIDE or f"`{option}`" in GUIDE


def test_every_event_is_in_the_guide() -> None:
    named = set(re.findall(r'log\.(?:event|failure)\(\s*"([a-z-]+)"', SOURCES))
    named |= {f"{name}-failed" for name in re.findall(r'(?:StoreTask|ask)\(\s*"([a-z]+)"', SOURCES)}
    assert len(named) > 12
    assert [name for name in sorted(named) if f"`{name}`" not in GUIDE] == []


def test_every_metric_is_in_the_guide(tmp_path: Path) -> None:
    text = Metrics().text(healthy=True, queue_batches=0, queue_bytes=0, data=tmp_path).decode()
    names = re.findall(r"# TYPE (\S+)", text)
    assert len(names) == 12
    assert [name for name in names if f"`{name}" not in GUIDE] == []


def test_the_guides_numbers_are_the_programs() -> None:
    assert f"{MAX_HEADER // 1024} KiB in 5 s" in GUIDE
    assert DRAIN_SECONDS < 10
