"""Ten clients of the demo that run `rappor.Client`, as an application would, each in its directory.

Each reports today's values, one report a request, and keeps its secret, ledger and outbox in its
directory: `rappor client inspect DIR` shows what it sent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

from rappor.client import Client
from rappor.collection import Collection
from rappor.demo import DemoError
from rappor.demo.crowd import PATIENCE_SECONDS
from rappor.demo.definitions import HOMEPAGE, INSTALL, START, THEME
from rappor.demo.interrupts import Interrupts
from rappor.demo.population import DAYS, DemoPopulation, Person, named, pair_named
from rappor.demo.truth import HeldValue, Truth

DEVICES = 10
_FLUSH_SECONDS, _PAUSE_SECONDS = 2.0, 0.2


def report_all(
    folder: Path,
    collections: tuple[Collection, ...],
    population: DemoPopulation,
    url: str,
    truth: Truth,
    interrupts: Interrupts,
    check: Callable[[], None],
) -> int:
    """Report from every device, wait until all is stored, and return how many devices reported.

    No device reports if the environment sets DO_NOT_TRACK: clients respect it. While reports wait
    to be stored, `check` is called repeatedly; it raises if waiting is useless.

    Raises:
        DemoError: a report was not stored in time.
    """
    with ExitStack() as opened:
        pairs = []
        for number, person in enumerate(population.devices(DEVICES), 1):
            with interrupts.held():
                client = Client.open(
                    folder / f"{number:02}",
                    collections,
                    consent=True,
                    upload_to=url,
                    dimensions={"country": person.country},
                    jitter=0.0,
                )
                opened.enter_context(client)
            for name, value, _ in _answers(person, collections):
                client.report(name, value)
            pairs.append((client, person))
        reported = 0
        for client, person in pairs:
            reported += _count(client, person, collections, truth, check)
            check()
        return reported


def _answers(
    person: Person, collections: tuple[Collection, ...]
) -> Iterator[tuple[str, object, str]]:
    """What a person reports today: the collection, the value, and its name in the truth."""
    homepage = person.homepage_on(DAYS - 1)
    yield HOMEPAGE, homepage, named(homepage)
    together = {"homepage": homepage, "channel": person.channel}
    yield INSTALL, together, pair_named(homepage, person.channel)
    if person.theme is not None:
        yield THEME, person.theme, person.theme
    ranges = next(collection.ranges for collection in collections if collection.name == START)
    if person.start is not None and ranges is not None:
        yield START, person.start, ranges.labels[ranges.range_of(person.start)]


def stored(client: Client, check: Callable[[], None], patience: float = PATIENCE_SECONDS) -> bool:
    """Wait until all reports of a client are stored; False if time ran out.

    After a refused request, a client waits for a while before it sends again.
    """
    until = time.monotonic() + patience
    while not client.flush(_FLUSH_SECONDS):
        check()
        if time.monotonic() > until:
            return False
        time.sleep(_PAUSE_SECONDS)
    return True


def _count(
    client: Client,
    person: Person,
    collections: tuple[Collection, ...],
    truth: Truth,
    check: Callable[[], None],
) -> bool:
    if client.status().state == "do not track":
        return False
    if not stored(client, check):
        status = client.status()
        raise DemoError(f"a client could not report: {status.upload or status.explanation}")
    held = {name: value for name, _, value in _answers(person, collections)}
    for sent in client.preview().sent:
        truth.add(HeldValue(sent.collection, sent.period, person.country, held[sent.collection]))
    return True
