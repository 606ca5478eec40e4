"""What a process asks of the machine that it runs on: ports, limits, an end with its parent."""

from __future__ import annotations

import signal
import socket
import sys

try:
    import ctypes
except ImportError:  # a Python that was built without libffi
    ctypes = None  # type: ignore[assignment]
try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

LOOPBACK = "127.0.0.1"
LOOPBACK_HOSTS = ("localhost", LOOPBACK, "::1")  # in a URL
LOOPBACK_ADDRESSES = frozenset((LOOPBACK, "::1", f"::ffff:{LOOPBACK}"))  # of a connection's peer


def bound(host: str, port: int) -> socket.socket:
    """A bound socket that no child inherits, or OSError that names the address."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
    except OSError as error:
        made.close()
        raise OSError(error.errno, error.strerror, f"{host}:{port}") from None
    made.set_inheritable(False)
    return made


def free_port(host: str = LOOPBACK) -> int:
    """A port that nobody listens on at this moment."""
    with bound(host, 0) as found:
        return int(found.getsockname()[1])


def no_core_dumps() -> None:
    """From now on a crash of this process, or of one that it starts, leaves no memory on disk."""
    if resource is not None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def die_with_parent() -> None:
    """In a child, before it begins: have the kernel end it with its parent; Linux only."""
    if sys.platform == "linux" and ctypes is not None:
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)
