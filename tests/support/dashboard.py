"""A data folder with something in it, quickly; and a real dashboard process that serves it."""

import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from rappor import Params, Ranges
from rappor.aggregate.counts import Counts
from rappor.collection import Collection, period_of
from rappor.dashboard.auth.roles import Role
from rappor.dashboard.prefetch import SWITCH
from rappor.dashboard.process import CACHE
from rappor.dashboard.settings import login_link
from rappor.dashboard.state import DashboardState
from rappor.mechanism import Field
from rappor.simulate import counts as simulated_counts
from rappor.simulate import tuples
from rappor.store import CellKey, Fold, open_store
from support.collecting import Process, today
from support.command import COMMAND
from support.visit import Visit

STRINGS = Params(k=64, h=2, m=8, f=0.25, p=0.35, q=0.65)
WEEKS = 8
COUNTRIES = {"DE": 1.0, "NZ": 0.6}
HIJACKER = "search.hijack-bar.net"
PAGES = [
    "google.com",
    "facebook.com",
    "youtube.com",
    "yahoo.com",
    "wikipedia.org",
    "amazon.com",
    "live.com",
    "ebay.com",
    "trademe.co.nz",
    "stuff.co.nz",
    "spiegel.de",
    "heise.de",
]
RARE = [f"shop{number:02}.example" for number in range(28)]  # on the list, held by nobody
OWNER = "Browser team"
TODAY = today()  # one day for the whole process, also where it is tested across midnight
NEXT_YEAR = date(TODAY.year + 1, 12, 31)


def collections() -> list[Collection]:
    """Strings, categories, ordinals; one with nothing yet, one with too little, one expired."""
    common: dict[str, Any] = {"owner": OWNER, "expires": NEXT_YEAR}
    small: dict[str, Any] = {"h": 1, "m": 1, "f": 0.25, "p": 0.35, "q": 0.65}
    browsers = ("Chrome", "Edge", "Firefox", "Safari", "Other")
    magnitudes = Ranges((8, 16, 32, 64, 128, 256, 512, 1024))
    return [
        Collection(
            "homepage",
            1,
            STRINGS,
            description="Which page a browser opens on",
            period="week",
            dimensions={"country": tuple(COUNTRIES)},
            **common,
        ),
        Collection(
            "browser",
            1,
            Params(k=5, **small),
            kind="category",
            categories=browsers,
            description="Which browser is the default one",
            period="week",
            **common,
        ),
        Collection(
            "start-time",
            2,
            Params(k=9, **small),
            kind="ordinal",
            ranges=magnitudes,
            description="How many milliseconds a start takes",
            period="day",
            **common,
        ),
        *(
            Collection(name, 1, STRINGS, description=about, period="week", **common)
            for name, about in (
                ("search-engine", "Which engine searches"),
                ("extensions", "Which extension is active"),
            )
        ),
        Collection(
            "old-survey",
            1,
            STRINGS,
            description="Which proxy was set",
            owner="Networks",
            period="week",
            expires=TODAY - timedelta(days=20),
        ),
    ]


def truth(week: int) -> dict[str, float]:
    """What people hold in a week, as weights: the hijacker rises from nothing in the last weeks."""
    weights = {name: 1 / (rank + 2) for rank, name in enumerate(PAGES)}
    weights[HIJACKER] = {WEEKS - 1: 0.35, WEEKS - 2: 0.2, WEEKS - 3: 0.06}.get(week, 0.0) + 1e-9
    weights |= {f"unlisted{number}.example": 0.02 for number in range(40)}
    return weights


def week(back: int) -> str:
    """The week this many weeks ago."""
    return period_of("week", TODAY - timedelta(weeks=back))


CHANNELS = ("stable", "beta", "nightly", "release candidate")
INSTALL_FIELDS = (Field("homepage", "string"), Field("channel", "category", categories=CHANNELS))
INSTALLS = tuples(  # pages get rarer; each prefers one channel
    INSTALL_FIELDS,
    {
        (page, channel): (0.8 if place % 3 == number else 0.1) / (place + 2)
        for place, page in enumerate(PAGES[:6])
        for number, channel in enumerate(CHANNELS)
    },
)


def tuple_of_installs(k: int = 64, m: int = 16) -> Collection:
    """A collection of kind tuple: which page comes with which channel."""
    return Collection(
        "install",
        1,
        Params(k, 1, m, 0.2001, 0.2239, 0.5307),
        kind="tuple",
        fields=INSTALL_FIELDS,
        description="Which page comes with which channel",
        period="week",
        owner=OWNER,
        expires=NEXT_YEAR,
    )


@dataclass(slots=True)
class Sample:
    """A data folder in the making."""

    folder: Path
    collections: dict[str, Collection] = field(default_factory=dict)
    cells: list[tuple[CellKey, Counts]] = field(default_factory=list)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def definitions(self) -> Path:
        return self.folder / "collections"

    def define(self, each: Collection) -> None:
        """A definition, in the folder and soon in the store."""
        self.definitions.mkdir(parents=True, exist_ok=True)
        file = self.definitions / f"{each.name}-{each.version}.toml"
        file.write_text(each.to_toml(), encoding="utf-8")
        self.collections[f"{each.name}-{each.version}"] = each

    def add(
        self,
        each: Collection,
        period: str,
        population: Mapping[str, float],
        reports: int,
        pairs: Iterable[tuple[str, str]] = (),
        seed: int = 1,
    ) -> None:
        """Simulated reports of one cell."""
        counts = simulated_counts(
            population,
            each.params_for(period),
            reports,
            seed=seed,
            kind=each.kind,
            fields=each.fields,
            views=each.views,
        )
        self.cells.append((CellKey.of(each.name, each.version, period, pairs), counts))

    def store(self) -> None:
        """Put everything into a real store, in one transaction."""
        self.data.mkdir(parents=True, exist_ok=True)
        store = open_store(self.data)
        try:
            for each in self.collections.values():
                store.save_definition(each.to_toml(), actor="collector")
            cells, self.cells = self.cells, []
            if cells:
                store.add([os.urandom(16)], lambda _: folds(cells), today())
        finally:
            store.close()

    def candidates(self, name: str, strings: Iterable[str]) -> None:
        """A first list of candidates, next to the definition."""
        file = self.definitions / f"{name}.candidates.txt"
        file.write_text("".join(f"{each}\n" for each in strings), encoding="utf-8")


def folds(cells: Iterable[tuple[CellKey, Counts]]) -> Iterator[Fold]:
    """Counts as a batch would bring them."""
    for key, counts in cells:
        for cohort, total in enumerate(counts.totals.tolist()):
            if total:
                yield Fold(key, cohort, counts.params.digest, total, counts.ones[cohort])


def sample_folder(folder: Path) -> Sample:
    """DATA and collections as DASHBOARD.md's examples have them, small enough to be quick."""
    sample = Sample(folder)
    made = {each.name: each for each in collections()}
    for each in made.values():
        sample.define(each)
    for number in range(WEEKS):
        period = week(WEEKS - 1 - number)
        for place, (country, size) in enumerate(COUNTRIES.items()):
            sample.add(
                made["homepage"],
                period,
                truth(number),
                int((50_000 + 1500 * number + 4000 * (number % 3)) * size),
                [("country", country)],
                seed=100 + 10 * number + place,
            )
        shares = dict(zip(made["browser"].categories or (), (52, 11, 14, 20, 3), strict=True))
        sample.add(made["browser"], period, shares, 36_000 + 1000 * (number % 4), seed=300 + number)
    labels = made["start-time"].ranges.labels if made["start-time"].ranges else ()
    starts = dict(zip(labels, (1, 4, 14, 28, 26, 15, 8, 3, 1), strict=True))
    for back in range(14):
        day = period_of("day", TODAY - timedelta(days=back))
        sample.add(made["start-time"], day, starts, 30_000 - 700 * (back % 5), seed=400 + back)
    sample.add(made["extensions"], week(0), truth(0), 400, seed=500)
    sample.store()
    sample.candidates("homepage", [*PAGES, HIJACKER, *RARE])
    sample.candidates("extensions", RARE)
    sample.candidates("search-engine", RARE)
    return sample


# A running dashboard.


class DashboardProcess(Process):
    """A process whose log says where the dashboard listens."""

    LISTENING = "dashboard-listening"


class Dashboard:
    """A dashboard process and its state."""

    def __init__(self, process: Process, sample: Sample) -> None:
        self.process, self.sample = process, sample
        self.url = f"http://127.0.0.1:{process.port}"
        self.state = DashboardState(sample.data / "dashboard.sqlite", sample.definitions)

    def link(self, role: Role) -> str:
        """The address of a one-time link."""
        name = role.value.replace(" ", "-")
        secret = self.state.new_link(name, "test", role)
        return login_link(self.url, secret)

    def browser(self, role: Role | None = None) -> Visit:
        """A plain HTTP client, logged in where a role is given."""
        visit = Visit(self.process.port)
        if role is not None:
            visit.log_in(self.link(role))
        return visit


_CACHES: list[Path] = []  # of all dashboards of this process: Vega's bundle takes seconds to make


@contextlib.contextmanager
def serving(sample: Sample, *options: str) -> Iterator[Dashboard]:
    """`rappor dashboard` on a free port."""
    fixed: list[str | Path] = ["--data", sample.data, "--collections", sample.definitions]
    quiet = {SWITCH: "off"}  # what is decoded is what a test asks for
    cache = sample.data / CACHE
    made = [file for folder in _CACHES for file in folder.glob("vega-*.js")]
    if made and not cache.exists():
        cache.mkdir(mode=0o700)
        shutil.copy(made[0], cache)
    _CACHES.append(cache)
    process = DashboardProcess([*COMMAND, "dashboard", *fixed, "--port", "0", *options], quiet)
    try:
        process.wait_until_listening(300)
        dashboard = Dashboard(process, sample)
        try:
            yield dashboard
        finally:
            dashboard.state.close()
    finally:
        if process.process.poll() is None:
            process.end(seconds=300)
        process.close()


def large_folder(folder: Path, names: int = 100, periods: int = 365) -> Sample:
    """Many collections with many periods, all with the same counts."""
    sample = Sample(folder)
    params = Params(k=8, h=2, m=1, f=0.5, p=0.5, q=0.75)
    counts = simulated_counts({"a": 1, "b": 2}, params, 2_000, seed=1)
    days = [period_of("day", TODAY - timedelta(days=back)) for back in range(periods)]
    for number in range(names):
        each = Collection(f"collection-{number:03}", 1, params, owner=OWNER, expires=NEXT_YEAR)
        sample.define(each)
        sample.cells += [(CellKey.of(each.name, 1, day), counts) for day in days]
    sample.store()
    return sample
