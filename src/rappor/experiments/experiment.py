"""What an experiment of the paper is, and what running it gives.

An `Experiment` describes an experiment, and running it gives an `Outcome`: published numbers next
to ours, figures, tables and words. `reproduce` and `pages` write an outcome to files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rappor.charts.theme import Spec
from rappor.experiments.seeds import Progress


@dataclass(frozen=True, slots=True)
class Comparison:
    """One published number next to ours.

    Attributes:
        what: what the number is, "standard error of a count".
        published: the number as the paper prints it, "2806", or "no figure".
        ours: our number with its spread over seeds, "2807 ± 3 (20 seeds)".
        agrees: the verdict; None if nothing was published to compare with, or if agreement follows
            from how the experiment was set up.
        why: one or two sentences: what agrees, or why it differs.
    """

    what: str
    published: str
    ours: str
    agrees: bool | None
    why: str

    @property
    def verdict(self) -> str:
        """The verdict as a word.

        >>> Comparison("ones in a report", "145", "144.5", True, "Rounded.").verdict
        'agrees'
        >>> Comparison("points simulated", "curves only", "44", None, "Near the curves.").verdict
        'extra'
        """
        if self.agrees is None:
            return "extra"
        return "agrees" if self.agrees else "differs"


def extra(sound: bool) -> bool | None:
    """The verdict on a number that the paper does not have: none, unless it contradicts itself.

    >>> extra(True), extra(False)
    (None, False)
    """
    return None if sound else False


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart; becomes NAME.png and NAME.svg.

    Attributes:
        name: the file's stem, "exponential-detected".
        title: a heading.
        caption: what the figure shows, in a sentence or two; also the alternative text.
        spec: a Vega-Lite specification made with `rappor.charts.theme.whole_chart` and the colours
            of the light theme; the dark one is made from it.
    """

    name: str
    title: str
    caption: str
    spec: Spec


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of numbers and words; becomes NAME.csv, with its first `show` rows on the page."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    note: str = ""
    show: int = 25


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an experiment found; `text` is paragraphs."""

    comparisons: tuple[Comparison, ...]
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...]
    text: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Experiment:
    """One figure or table of the paper.

    Attributes:
        name: as on the command line, "life-of-a-report".
        title: a heading.
        source: where it is in the paper, "Table 1 and Figure 5, §5.2".
        about: what the paper did, one paragraph.
        run: called with the number of seeds (20 or more by default) and a progress function.
        stand_in: if the paper's data are private, the synthetic data that replace them.
        replicates: the number of collections for a number of seeds, in words; some draw several.
    """

    name: str
    title: str
    source: str
    about: str
    run: Callable[[int, Progress], Outcome]
    stand_in: str = ""
    replicates: Callable[[int], str] = "{} seeds".format
