"""What the demo collects: four collections, their files, and the lists of candidate homepages."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

from rappor import files
from rappor.collection import Collection
from rappor.demo.population import (
    ALSO,
    CHANNELS,
    COUNTRIES,
    START_EDGES,
    THEMES,
    candidates,
    known_sites,
)
from rappor.mechanism import Field, Ranges
from rappor.params import Params

HOMEPAGE, THEME, START, INSTALL = "homepage", "theme", "start-time", "install"
CANDIDATES, INSTALL_CANDIDATES = f"{HOMEPAGE}.candidates.txt", f"{INSTALL}.candidates.txt"
_OWNER = "rappor demo"
_NOISE = (0.5, 0.5, 0.75)  # f, p, q: the paper's


def definitions(people: int, today: datetime.date) -> tuple[Collection, ...]:
    """Homepage (strings), theme (categories) and start time (ranges), each with one report a day.

    Then install: homepage and channel together (a tuple), with one report in all. Lint warns that
    the homepage is asked for twice: what both cost adds up.

    >>> collections = definitions(90_000, datetime.date(2026, 11, 16))
    >>> [(item.name, item.kind, round(item.epsilon_one, 3)) for item in collections[:2]]
    [('homepage', 'string', 1.074), ('theme', 'category', 0.537)]
    >>> [(item.name, item.kind, round(item.epsilon_one, 3)) for item in collections[2:]]
    [('start-time', 'ordinal', 0.537), ('install', 'tuple', 1.099)]
    """
    shared: dict[str, Any] = {
        "owner": _OWNER,
        "expires": today + datetime.timedelta(days=90),
        "dimensions": {"country": tuple(COUNTRIES)},
    }
    homepage = Collection(
        HOMEPAGE,
        1,
        Params.preset("windows"),
        description="Which page a browser opens on. Simulated by rappor demo.",
        sensitivity="high",
        reviews=("docs/demo.md",),
        values="slow",
        max_values=2,
        expected_reports=people,
        **shared,
    )
    ranges = Ranges(START_EDGES)
    return (
        homepage,
        Collection(
            THEME,
            1,
            Params(len(THEMES), 1, 1, *_NOISE),
            "category",
            description="Which theme a browser wears. Simulated by rappor demo.",
            sensitivity="low",
            categories=tuple(THEMES),
            expected_reports=people // ALSO,
            **shared,
        ),
        Collection(
            START,
            1,
            Params(ranges.count, 1, 1, *_NOISE),
            "ordinal",
            description="How long a browser takes to start, in ms. Simulated by rappor demo.",
            sensitivity="low",
            ranges=ranges,
            expected_reports=people // ALSO,
            **shared,
        ),
        Collection(
            INSTALL,
            1,
            Params(128, 1, 16, 0.0, 0.25, 0.5),
            "tuple",
            description="Which homepage comes with which way to install. Simulated by rappor demo.",
            sensitivity="high",
            reviews=("docs/demo.md",),
            fields=(
                Field("homepage", "string"),
                Field("channel", "category", categories=tuple(CHANNELS)),
            ),
            one_time=True,
            expected_reports=people,
            **shared,
        ),
    )


def write(collections: tuple[Collection, ...], folder: Path, seed: int) -> Path:
    """Write the collection files and the lists of candidates to a new folder; return the folder.

    Args:
        collections: the collections.
        folder: the folder.
        seed: the seed of the population, for the sites that it visits.
    """
    folder.mkdir(parents=True)
    for collection in collections:
        file = folder / f"{collection.name}.toml"
        files.write_text(file, collection.to_toml())
    lists = {CANDIDATES: candidates(), INSTALL_CANDIDATES: known_sites(seed)}
    for name, strings in lists.items():
        files.write_text(folder / name, "\n".join((*strings, "")))
    return folder
