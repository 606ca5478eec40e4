"""What a process needs from its machine: ports, limits, its user, an end with its parent."""

from __future__ import annotations

import getpass
import signal
import socket
import sys

try:
    import resource
except ImportError:  # Windows does not have it
    resource = None  # type: ignore[assignment]

LOOPBACK = "127.0.0.1"
LOOPBACK_HOSTS = ("localhost", LOOPBACK, "::1")  # names of this machine, in addresses
LOOPBACK_ADDRESSES = frozenset((LOOPBACK, "::1", f"::ffff:{LOOPBACK}"))  # of a connection's peer


def bound(host: str, port: int) -> socket.socket:
    """A bound socket that no child process inherits; OSError names the address."""
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
    """A port that nobody is listening on right now."""
    with bound(host, 0) as found:
        return int(found.getsockname()[1])


def no_core_dumps() -> None:
    """From now on, a crash of this process or of its children writes no memory to disk."""
    if resource is not None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def die_with_parent() -> None:
    """Call it in a child at its start: the kernel ends it when its parent ends. Linux only."""
    if sys.platform == "linux":
        import ctypes  # slow to import, and needed here only

        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)


def actor() -> str:
    """The name of the system's user, for the audit log."""
    try:
        return f"user {getpass.getuser()}"
    except (OSError, KeyError, ImportError):
        return "user unknown"
