"""Waiting for a condition: never for a moment, never with a limit that a busy machine reaches."""

import subprocess
import time
from collections.abc import Callable
from typing import Any, TypeVar

Found = TypeVar("Found")
LIMIT = 300.0  # seconds: ends a test that hangs, says nothing about how fast anything is


def wait_for(
    condition: Callable[[], Found | None],
    what: str = "the condition",
    seconds: float = LIMIT,
    pause: float = 0.01,
    process: "subprocess.Popen[Any] | None" = None,
) -> Found:
    """Return the first true value of a condition, or fail.

    Args:
        condition: Asked again and again; an AssertionError that it raises ends the wait.
        what: The condition in words, for the message.
        seconds: The limit.
        pause: How long to rest before it is asked again, in seconds.
        process: What brings the condition about; its end ends the wait.
    """
    until = time.monotonic() + seconds
    while True:
        code = None if process is None else process.poll()  # before the condition is asked
        if found := condition():
            return found
        if code is not None:
            raise AssertionError(f"waited for {what}, but the process ended with exit code {code}")
        if time.monotonic() > until:
            raise AssertionError(f"waited {seconds:g} s in vain for {what}")
        time.sleep(pause)
