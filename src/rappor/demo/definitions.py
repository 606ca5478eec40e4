"""What the demo collects: three collections, their files, and the list of candidate homepages."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

from rappor import files
from rappor.collection import Collection
from rappor.demo.population import ALSO, COUNTRIES, START_EDGES, THEMES, candidates
from rappor.mechanism import Ranges
from rappor.params import Params

HOMEPAGE, THEME, START = "homepage", "theme", "start-time"
CANDIDATES = f"{HOMEPAGE}.candidates.txt"
_OWNER = "rappor demo"
_NOISE = (0.5, 0.5, 0.75)  # f, p, q: the paper's


def definitions(people: int, today: datetime.date) -> tuple[Collection, ...]:
    """Homepage (strings), theme (categories) and start time (ranges), each with one report a day.

    >>> collections = definitions(90_000, datetime.date(2026, 11, 16))
    >>> [(item.name, item.kind, round(item.epsilon_one, 3)) for item in collections]
    [('homepage', 'string', 1.074), ('theme', 'category', 0.537), ('start-time', 'ordinal', 0.537)]
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
    )


def write(collections: tuple[Collection, ...], folder: Path) -> Path:
    """Write the collection files and the list of candidates to a new folder; return the folder."""
    folder.mkdir(parents=True)
    for collection in collections:
        file = folder / f"{collection.name}.toml"
        files.write_text(file, collection.to_toml())
    files.write_text(folder / CANDIDATES, "\n".join((*candidates(), "")))
    return folder
