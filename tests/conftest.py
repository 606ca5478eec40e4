"""What all tests share: one thread for linear algebra, the signals of somebody at a terminal."""

import os
import signal
import threading

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
