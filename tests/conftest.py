"""What all tests share: the signals that somebody at a terminal has."""

import signal
import threading


def pytest_configure() -> None:
    """Hear Ctrl-C, and let processes that tests start hear it.

    A shell has the processes in its background ignore it, and they hand that down.
    """
    if (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    ):
        signal.signal(signal.SIGINT, signal.default_int_handler)
