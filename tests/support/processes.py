"""Functions that another process can import, to see which one runs them and how."""

import os


def process_id(_seed: int) -> int:
    return os.getpid()


def threads(_seed: int) -> str | None:
    return os.environ.get("OPENBLAS_NUM_THREADS")


def fail_unless(parent: int, error: Exception, seed: int) -> int:
    """Raise an error of the experiment's own in every process but the parent."""
    if os.getpid() != parent:
        raise error
    return seed


def die_unless(parent: int, seed: int) -> int:
    """Kill every process but the parent, as a system short of memory does."""
    if os.getpid() != parent:
        os._exit(9)
    return seed
