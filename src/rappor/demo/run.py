"""The demo from one end to the other: server, crowd, devices, decoding."""

from __future__ import annotations

import datetime
import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from rappor import csv_cells
from rappor.collection import Collection, period_of
from rappor.demo import definitions, devices
from rappor.demo.crowd import Task
from rappor.demo.folder import DemoFolder
from rappor.demo.interrupts import Interrupts
from rappor.demo.population import DAYS, DemoPopulation
from rappor.demo.results import DemoResults, find
from rappor.demo.server import DemoServer
from rappor.demo.truth import Truth
from rappor.demo.workers import CrowdWorkers

PROCESSES = 2
Progress = Callable[[str, int, int], None]  # what is being done, how much of it, of how much


@dataclass(frozen=True, slots=True)
class DemoOutcome:
    """A demo that has run.

    Attributes:
        collections: what was asked.
        population: who was asked.
        devices: how many reported through `rappor.Client`.
        periods: the days.
        truth: what the stored reports held.
        seconds: of sending, and of decoding.
        found: what was learnt.
    """

    collections: tuple[Collection, ...]
    population: DemoPopulation
    devices: int
    periods: tuple[str, ...]
    truth: Truth
    seconds: tuple[float, float]
    found: DemoResults


def days(today: datetime.date) -> tuple[str, ...]:
    """The periods of the demo, the last one today.

    >>> days(datetime.date(2026, 11, 16))[0]
    '2026-11-10'
    """
    first = today - datetime.timedelta(days=DAYS - 1)
    return tuple(period_of("day", first + datetime.timedelta(days=n)) for n in range(DAYS))


def prepare(
    where: DemoFolder, population: DemoPopulation, today: datetime.date
) -> tuple[Collection, ...]:
    """Write the definitions that the server is started with."""
    made = definitions.definitions(population.people, today)
    definitions.write(made, where.collections)
    return made


def collect(
    where: DemoFolder,
    server: DemoServer,
    collections: tuple[Collection, ...],
    population: DemoPopulation,
    today: datetime.date,
    progress: Progress,
    interrupts: Interrupts,
) -> DemoOutcome:
    """Have everyone report, then decode.

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
            tuple(each.to_toml() for each in collections),
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
        real = devices.report_all(
            where.clients, collections, population, server.url, truth, interrupts, check
        )
        workers.listen(truth, stored, check)
    sent = time.monotonic()
    progress("decoding", 0, 0)
    found = find(where.data, collections, truth)
    took = (sent - began, time.monotonic() - sent)
    return DemoOutcome(collections, population, real, periods, truth, took, found)


def write_truth(where: DemoFolder, truth: Truth) -> None:
    """What the reports on homepages held, as `rappor decode --truth` reads it."""
    held = sorted(truth.of(definitions.HOMEPAGE).items(), key=lambda each: (-each[1], each[0]))
    with where.truth.open("w", encoding="utf-8", newline="") as file:
        file.writelines(["string,count\n", *map(csv_cells.line, held)])
