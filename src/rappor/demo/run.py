"""The demo from start to end: server, crowd, devices, decoding."""

from __future__ import annotations

import datetime
import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from rappor import csv_cells, files
from rappor.collection import Collection, period_of
from rappor.demo import definitions, devices
from rappor.demo.crowd import CrowdWorkers, Task
from rappor.demo.folder import DemoFolder
from rappor.demo.interrupts import Interrupts
from rappor.demo.population import DAYS, DemoPopulation
from rappor.demo.results import DemoResults, decode_and_compare
from rappor.demo.server import DemoServer
from rappor.demo.truth import Truth

PROCESSES = 2
Progress = Callable[[str, int, int], None]  # the step, how much of it is done, how much there is


@dataclass(frozen=True, slots=True)
class DemoOutcome:
    """A finished demo.

    Attributes:
        collections: the collections that people reported to.
        population: the people.
        devices: how many people reported through `rappor.Client`.
        periods: the days.
        truth: the values behind the stored reports.
        seconds: the time that sending took, and decoding.
        results: what decoding found.
    """

    collections: tuple[Collection, ...]
    population: DemoPopulation
    devices: int
    periods: tuple[str, ...]
    truth: Truth
    seconds: tuple[float, float]
    results: DemoResults


def days(today: datetime.date) -> tuple[str, ...]:
    """The periods of the demo; the last one is today.

    >>> days(datetime.date(2026, 11, 16))[0]
    '2026-11-10'
    """
    first = today - datetime.timedelta(days=DAYS - 1)
    return tuple(period_of("day", first + datetime.timedelta(days=n)) for n in range(DAYS))


def prepare(
    where: DemoFolder, population: DemoPopulation, today: datetime.date
) -> tuple[Collection, ...]:
    """Write the definitions with which the server starts."""
    collections = definitions.definitions(population.people, today)
    definitions.write(collections, where.collections, population.seed)
    return collections


def collect(
    where: DemoFolder,
    server: DemoServer,
    collections: tuple[Collection, ...],
    population: DemoPopulation,
    today: datetime.date,
    progress: Progress,
    interrupts: Interrupts,
) -> DemoOutcome:
    """Send the reports of the whole population, then decode.

    Raises:
        DemoError: the server or a process failed.
    """
    began = time.monotonic()
    truth, periods = Truth(), days(today)
    steps = min(PROCESSES, os.cpu_count() or 1)
    tasks = [
        Task(
            population.people,
            population.seed,
            number,
            steps,
            server.url,
            tuple(collection.to_toml() for collection in collections),
            periods,
            server.gateway_key,
        )
        for number in range(steps)
    ]
    done = 0

    def stored(more: int) -> None:
        nonlocal done
        done += more
        progress("reporting", done, population.reports)

    def check() -> None:
        interrupts.check()
        server.check()

    with ExitStack() as started:
        with interrupts.held():
            workers = started.enter_context(CrowdWorkers(tasks))
        stored(0)
        real_clients = devices.report_all(
            where.clients, collections, population, server.url, truth, interrupts, check
        )
        workers.listen(truth, stored, check)
    sent = time.monotonic()
    progress("decoding", 0, 0)
    results = decode_and_compare(where.data, truth, population.seed)
    seconds = (sent - began, time.monotonic() - sent)
    return DemoOutcome(collections, population, real_clients, periods, truth, seconds, results)


def write_truth(where: DemoFolder, truth: Truth, period: str) -> None:
    """Write the true homepages of a day and of all, as `rappor decode --truth` reads them."""
    for path, day in ((where.truth, period), (where.whole_truth, None)):
        counted = truth.of(definitions.HOMEPAGE, period=day)
        held = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
        files.write_text(path, "".join(["string,count\n", *map(csv_cells.line, held)]))
