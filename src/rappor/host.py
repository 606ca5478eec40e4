"""What a process needs from its machine: ports, limits, its user, an end with its parent."""

from __future__ import annotations

import getpass
import signal
import socket
import sys

from rappor.errors import UnsupportedSystemError

try:
    import fcntl
except ImportError:  # Windows does not have it
    fcntl = None  # type: ignore[assignment]

try:
    import resource
except ImportError:  # Windows does not have it
    resource = None  # type: ignore[assignment]

LOOPBACK = "127.0.0.1"
LOOPBACK_HOSTS = ("localhost", LOOPBACK, "::1")  # names of this machine, in addresses
LOOPBACK_ADDRESSES = frozenset((LOOPBACK, "::1", f"::ffff:{LOOPBACK}"))  # of a connection's peer


def check_server_system() -> None:
    """UnsupportedSystemError unless this system has the file locks and signals of POSIX.

    A collector or a dashboard calls it at its start; a client needs neither.
    """
    if fcntl is None or not hasattr(signal, "SIGHUP"):
        raise UnsupportedSystemError(
            "collector and dashboard need the file locks and signals of Linux or macOS, which this "
            f"system ({sys.platform}) lacks; run them in WSL or a container (clients run on "
            "Windows too)"
        )


def bound(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """A bound socket that no child process inherits; OSError names the address.

    With `shared`, other processes of the same user may bind the same port in the same way, and the
    kernel spreads new connections over them.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
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
