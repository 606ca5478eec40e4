"""Run a function under many seeds, on two cores, and the spread of its results.

Every number that depends on chance is shown with its spread, because one lucky seed proves nothing.
"""

from __future__ import annotations

import functools
import math
import multiprocessing
import os
import signal
import statistics
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

from rappor.checks import whole
from rappor.errors import ParamsError

Progress = Callable[[str], None]
Result = TypeVar("Result")

PROCESSES = 2
FEW = 4  # seeds below which starting processes takes longer than it saves
_THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)


class Spread(NamedTuple):
    """Mean, standard deviation between seeds, and standard error of the mean."""

    mean: float
    sd: float
    se: float


def replicate(
    function: Callable[[int], Result],
    seeds: int | Sequence[int],
    progress: Progress,
    label: str,
) -> list[Result]:
    """The results of `function(seed)`, in the order of the seeds.

    It uses two processes, each with one thread for linear algebra. It runs the seeds one after
    another if they are few, or if processes cannot be started or are killed; the results are the
    same. Errors of `function` are raised here. The processes end with this call; an interrupt
    (Ctrl-C) ends them at once.

    Args:
        function: a function at the top level of a module, or a `functools.partial` of one, so
            that another process can import it.
        seeds: how many (1, 2, ...), or the seeds themselves.
        progress: called with a line of text after each seed, and if processes cannot be used.
        label: what is being done, for that line.
    """
    listed = range(1, whole("seeds", seeds, 1) + 1) if isinstance(seeds, int) else list(seeds)
    tell = functools.partial(_tell, progress, label, len(listed))
    tell(0)
    if len(listed) < FEW or (os.cpu_count() or 1) < PROCESSES:
        return _one_by_one(function, listed, tell)
    try:
        pool, futures = _start(function, listed)
    except (BrokenProcessPool, ImportError, OSError) as error:
        why = f"processes cannot be started ({error})"
    else:
        try:
            return _results(pool, futures, tell)
        except BrokenProcessPool:
            why = "a process ended abruptly"
    progress(f"{label}: {why}; seeds run one after the other")
    return _one_by_one(function, listed, tell)


def _tell(progress: Progress, label: str, seeds: int, done: int) -> None:
    progress(f"{label}: {done} of {seeds} seeds")


def _one_by_one(
    function: Callable[[int], Result], seeds: Sequence[int], tell: Callable[[int], None]
) -> list[Result]:
    results = []
    for done, seed in enumerate(seeds, 1):
        results.append(function(seed))
        tell(done)
    return results


def _start(
    function: Callable[[int], Result], seeds: Sequence[int]
) -> tuple[ProcessPoolExecutor, list[Future[Result]]]:
    """Start the processes, by submitting the seeds."""
    context = multiprocessing.get_context("spawn")  # a fork may copy a lock that a thread holds
    pool = ProcessPoolExecutor(PROCESSES, context, _one_thread)
    try:
        with _interrupts_held():
            return pool, [pool.submit(function, seed) for seed in seeds]
    except BaseException:
        _end(pool)
        raise


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Delay Ctrl-C, and start processes that ignore it: the parent ends them.

    The blocked signal is inherited by the processes. It does not protect this process: another
    thread (linear algebra has some) receives it, and Python then raises in the main thread.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    came: list[int] = []
    action = signal.getsignal(signal.SIGINT)
    swaps = callable(action) and threading.current_thread() is threading.main_thread()
    if swaps:
        signal.signal(signal.SIGINT, lambda number, _frame: came.append(number))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)  # one that waits comes now
        if swaps:
            signal.signal(signal.SIGINT, action)
        if came:
            signal.raise_signal(signal.SIGINT)


def _end(pool: ProcessPoolExecutor) -> None:
    """Kill the processes, and do not wait for them."""
    for process in list((pool._processes or {}).values()):
        process.kill()
    pool.shutdown(wait=False, cancel_futures=True)


def _results(
    pool: ProcessPoolExecutor, futures: list[Future[Result]], tell: Callable[[int], None]
) -> list[Result]:
    with pool:
        try:
            waiting = set(futures)
            while waiting:
                finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in finished:
                    future.result()  # the first failure ends the run
                tell(len(futures) - len(waiting))
        except BaseException:
            _end(pool)
            raise
        return [future.result() for future in futures]


def _one_thread() -> None:
    """Limit linear algebra to one thread, before numpy is imported there."""
    os.environ.update(dict.fromkeys(_THREADS, "1"))


def spread(values: Sequence[float]) -> Spread:
    """Mean, standard deviation and standard error of the mean, of two values or more.

    >>> spread([1.0, 2.0, 3.0])
    Spread(mean=2.0, sd=1.0, se=0.5773502691896258)
    """
    numbers = [float(value) for value in values]
    if len(numbers) < 2:
        raise ParamsError(f"a spread needs at least 2 values, got {len(numbers)}")
    sd = statistics.stdev(numbers)
    return Spread(statistics.fmean(numbers), sd, sd / math.sqrt(len(numbers)))


def root_mean_square(values: Iterable[float]) -> float:
    """The root of the mean of the squares.

    >>> root_mean_square([1.0, 7.0])
    5.0
    """
    return math.sqrt(statistics.fmean(float(value) ** 2 for value in values))


def mean_sd(values: Sequence[float], form: str | None = None, unit: str = "") -> str:
    """Mean ± standard deviation between seeds, for a table.

    Args:
        values: one number for each seed.
        form: a format specification such as ".1f" or ",.0f"; by default as many places as show two
            digits of the standard deviation.
        unit: written after the numbers, such as " %".

    >>> mean_sd([2806.1, 2807.9, 2809.2], ".0f")
    '2808 ± 2 (3 seeds)'
    """
    found = spread(values)
    if form is None:
        places = 0 if found.sd == 0 else max(0, 1 - math.floor(math.log10(found.sd)))
        form = f",.{min(places, 12)}f"
    return f"{found.mean:{form}} ± {found.sd:{form}}{unit} ({len(values)} seeds)"
