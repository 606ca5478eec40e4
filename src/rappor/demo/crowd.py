"""A process that is many clients: `python -m rappor.demo.crowd` encodes their reports and sends.

It reads one JSON line (`Task`) from standard input, and writes JSON lines: how many reports were
stored, and in the end what they held. It ends when its standard input does: with its parent.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

from rappor.collection import Collection
from rappor.demo.definitions import HOMEPAGE, START, THEME
from rappor.demo.population import DAYS, DemoPopulation, Person, named
from rappor.demo.sending import Mail
from rappor.demo.truth import Held, Truth
from rappor.errors import RapporError
from rappor.mechanism import new_secret
from rappor.mechanism.report import Report

Told = Callable[[dict[str, object]], None]


@dataclass(frozen=True, slots=True)
class Task:
    """What one process has to do.

    Attributes:
        people: in all processes together.
        seed: of the population.
        first: the first chunk of this process,
        step: and how many further on the next one is.
        url: the collector's address.
        definitions: the collections as TOML: homepage, theme, start time.
        periods: one for each day.
        gateway_key: for batches of many people.
    """

    people: int
    seed: int
    first: int
    step: int
    url: str
    definitions: tuple[str, ...]
    periods: tuple[str, ...]
    gateway_key: str

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> Task:
        """The task of a line."""
        return cls(**json.loads(line))


def work(task: Task, tell: Told) -> None:
    """Draw, encode and send every chunk of this task."""
    population = DemoPopulation(task.people, task.seed)
    collections = {
        each.name: each for each in (Collection.from_toml(text) for text in task.definitions)
    }
    mail, truth = Mail(task.url, task.gateway_key), Truth()
    for number in range(task.first, population.chunks, task.step):
        made = encode(population.chunk(number), collections)
        for (name, day, country), (reports, values) in made.items():
            period = task.periods[day]
            mail.send(reports, collections[name], period, {"country": country})
            for value in values:
                truth.add(Held(name, period, country, named(value) if name == HOMEPAGE else value))
            tell({"stored": len(reports)})
    tell({"truth": truth.to_lists()})


Made = dict[tuple[str, int, str], tuple[list[Report], list[str]]]


def encode(people: Iterable[Person], collections: dict[str, Collection]) -> Made:
    """The reports of some people by collection, day and country, and what they hold.

    Each person has a secret of their own from the operating system, and encoders over it as a real
    client has: one B' a value, a fresh report each day.
    """
    made: Made = {}
    ranges = collections[START].ranges
    labels = () if ranges is None else ranges.labels
    for person in people:
        secret = new_secret()
        homepage = collections[HOMEPAGE].encoder(secret)
        for day in range(DAYS):
            value = person.homepage_on(day)
            _put(made, (HOMEPAGE, day, person.country), homepage.encode(value), value)
        if person.theme is not None:
            theme = collections[THEME].encoder(secret)
            for day in range(DAYS):
                report = theme.encode(person.theme)
                _put(made, (THEME, day, person.country), report, person.theme)
        if person.start is not None and ranges is not None:
            start, label = collections[START].encoder(secret), labels[ranges.range_of(person.start)]
            for day in range(DAYS):
                _put(made, (START, day, person.country), start.encode(person.start), label)
    return made


def _put(made: Made, key: tuple[str, int, str], report: Report, value: str) -> None:
    reports, values = made.setdefault(key, ([], []))
    reports.append(report)
    values.append(value)


def main() -> int:
    """Do the task on standard input."""
    line = sys.stdin.readline()
    if not line:  # the parent is gone already
        return 1
    task = Task.from_json(line)
    threading.Thread(target=_end_with_parent, daemon=True).start()

    def tell(said: dict[str, object]) -> None:
        print(json.dumps(said), flush=True)

    try:
        work(task, tell)
    except (RapporError, OSError) as error:
        tell({"error": str(error)})
        return 1
    return 0


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
