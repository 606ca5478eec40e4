"""What all tests share: properties, one thread for linear algebra, the signals of a terminal."""

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, settings

# Properties are about what holds, not about how fast a busy machine is today. Their examples are
# the same in every run, unless `--hypothesis-profile=random` asks for others.
settings.register_profile(
    "random", derandomize=False, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("rappor", settings.get_profile("random"), derandomize=True)
settings.load_profile("rappor")

# Before numpy is imported: as many test processes as cores, each with as many threads, would spend
# most of their time waiting for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def pytest_configure() -> None:
    """Hear Ctrl-C, and let processes that tests start hear it.

    A shell has the processes in its background ignore it, and they hand that down.
    """
    if (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    ):
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def _without_the_browsers_loop(item: pytest.Item) -> Iterator[None]:
    """Playwright's event loop counts as running in a process for as long as its browser is open."""
    loop = None if "browser" in item.path.parts else asyncio._get_running_loop()
    if loop is None:
        yield
        return
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(loop)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    with _without_the_browsers_loop(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    with _without_the_browsers_loop(item):
        return (yield)
