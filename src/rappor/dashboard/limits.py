"""Limits of a process: no core dumps, bounded memory and computing time."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path


def no_core_dumps() -> None:
    """Turn core dumps off: the memory holds counts, cookies and tokens."""
    if sys.platform != "win32":
        import resource

        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def limit(memory: int, seconds: int) -> None:
    """Limit this process from now on, if the system supports it.

    Args:
        memory: bytes of address space beyond what it has now.
        seconds: computing time.
    """
    if sys.platform != "win32":
        import resource

        with suppress(OSError, ValueError):
            pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
            most = pages * resource.getpagesize() + memory
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
