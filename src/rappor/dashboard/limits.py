"""What a process of the dashboard may leave behind and take: no core dumps, so much memory."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path


def no_core_dumps() -> None:
    """Have a crash leave no copy of the memory on disk: it holds counts, cookies and tokens."""
    if sys.platform != "win32":
        import resource

        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def limit(memory: int, seconds: int) -> None:
    """Bound this process from now on, as far as the system can.

    Args:
        memory: bytes of address space beyond what it has now.
        seconds: of computing.
    """
    if sys.platform != "win32":
        import resource

        with suppress(OSError, ValueError):
            pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
            most = pages * resource.getpagesize() + memory
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
