"""The cells of google/rappor's regression grid (its tests/regtest_spec.py), as data.

Five shapes × four sizes × five configurations, and five demos. Nothing is scaled down: counts are
drawn from their exact distribution, which takes no longer for a hundred million reports.
"""

from __future__ import annotations

from dataclasses import dataclass

from rappor import Params
from rappor.simulate import GOOGLE_SHAPES, Population, google_shape

# name -> (different strings, clients); each client reports once
SIZES = {
    "tiny": (100, 1_000),
    "small": (100, 1_000_000),
    "medium": (1_000, 10_000_000),
    "large": (10_000, 100_000_000),
}

_PRIVATE = Params(k=8, h=2, m=128, f=0.45, p=0.39, q=0.61)
_LOOSE = Params(k=8, h=2, m=128, f=0.0, p=0.225, q=0.775)
_DEMO = Params(k=16, h=2, m=64, f=0.2, p=0.1, q=0.9)

# name -> (parameters, absent candidates for each string, whether some strings are not listed)
CONFIGURATIONS = {
    "typical": (_PRIVATE, 0.2, True),
    "sharp": (_PRIVATE, 0.0, False),
    "loose": (_LOOSE, 0.2, True),
    "over_x2": (_PRIVATE, 2.0, True),
    "over_x10": (_PRIVATE, 10.0, True),
}

DEMO_CLIENTS, DEMO_REPORTS_EACH, DEMO_STRINGS, DEMO_ABSENT = 10_000, 10, 100, 10


@dataclass(frozen=True, slots=True)
class Cell:
    """One collection to simulate and decode.

    `missing`: strings whose names end in 9, a tenth of them, are left off the candidate list.
    """

    name: str
    group: str
    shape: str
    params: Params
    strings: int
    clients: int
    each: int
    absent: int
    missing: bool

    @property
    def reports(self) -> int:
        return self.clients * self.each

    def population(self) -> Population:
        """The strings, and the list that is decoded against."""
        full = google_shape(self.shape, self.strings, absent=self.absent)
        nines = [each for each in full.strings if each.endswith("9")]
        return full.leaving_out(nines) if self.missing else full


def grid() -> list[Cell]:
    """All cells in google/rappor's order and under its names."""
    cells = []
    for size, (strings, clients) in SIZES.items():
        for shape in GOOGLE_SHAPES:
            for name, (params, extra, missing) in CONFIGURATIONS.items():
                about = (params, strings, clients, 1, int(strings * extra), missing)
                cells.append(Cell(f"r-{shape}-{size}-{name}", size, shape, *about))
    for number, shape in enumerate(("unif", "gauss", "exp", "zipf1", "zipf1.5"), 1):
        about = (_DEMO, DEMO_STRINGS, DEMO_CLIENTS, DEMO_REPORTS_EACH, DEMO_ABSENT, True)
        cells.append(Cell(f"demo{number}", "demo", shape, *about))
    return cells
