"""Ten of the demo's clients as an application has them: `rappor.Client`, a directory each.

They report what is theirs today, each report in a request of its own, and keep secret, ledger and
outbox in their directories: `rappor client inspect DIR` shows what they sent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

from rappor.client import Client
from rappor.collection import Collection
from rappor.demo.definitions import HOMEPAGE, START, THEME
from rappor.demo.errors import DemoError
from rappor.demo.interrupts import Interrupts
from rappor.demo.population import DAYS, DemoPopulation, Person, named
from rappor.demo.sending import PATIENCE_SECONDS
from rappor.demo.truth import Held, Truth

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
    """Have every device report, wait until all is stored, and count it; how many reported.

    None does where the environment says DO_NOT_TRACK: a client obeys. While reports wait to be
    stored, `check` is called now and then: it raises if waiting is no use.

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
    """What a person reports today: collection, value, and the truth's name for it."""
    homepage = person.homepage_on(DAYS - 1)
    yield HOMEPAGE, homepage, named(homepage)
    if person.theme is not None:
        yield THEME, person.theme, person.theme
    ranges = next(each.ranges for each in collections if each.name == START)
    if person.start is not None and ranges is not None:
        yield START, person.start, ranges.labels[ranges.range_of(person.start)]


def stored(client: Client, check: Callable[[], None], patience: float = PATIENCE_SECONDS) -> bool:
    """Wait until all reports of a client are stored; False if they were not in time.

    One request that is refused makes a client wait for a while, as it should.
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
        truth.add(Held(sent.collection, sent.period, person.country, held[sent.collection]))
    return True
