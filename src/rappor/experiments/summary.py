"""What was run, as the plain document that summary.json holds and the index page shows."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rappor._version import __version__
from rappor.experiments import NAMES
from rappor.experiments.experiment import Experiment, Outcome

FILE = "summary.json"
ENOUGH_SEEDS = 20

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One experiment that was run: its outcome, or the error that ended it.

    Attributes:
        name: the experiment's name.
        experiment: None if it could not be loaded.
        outcome: None if it failed.
        error: None if it did not fail.
        seeds: how many were requested.
        seconds: how long it took.
    """

    name: str
    experiment: Experiment | None
    outcome: Outcome | None
    error: Exception | None
    seeds: int
    seconds: float

    @property
    def failure(self) -> str | None:
        """Why it failed, in a line; None if it did not fail."""
        if self.error is None:
            return None
        return f"{type(self.error).__name__}: {self.error}"


def entry(done: RunRecord) -> Document:
    """One experiment's part of the document."""
    about = done.experiment
    found = done.outcome or Outcome((), (), ())
    return {
        "title": about.title if about else done.name,
        "source": about.source if about else "",
        "stand_in": about.stand_in if about else "",
        "seeds": done.seeds,
        "replicates": about.replicates(done.seeds) if about else f"{done.seeds} seeds",
        "seconds": round(done.seconds, 1),
        "failed": done.failure,
        "page": f"{done.name}/index.html",
        "comparisons": [
            {
                "what": comparison.what,
                "published": comparison.published,
                "ours": comparison.ours,
                "verdict": comparison.verdict,
                "why": comparison.why,
            }
            for comparison in found.comparisons
        ],
        "figures": [
            {"name": figure.name, "title": figure.title, "caption": figure.caption}
            for figure in found.figures
        ],
        "tables": [table.name for table in found.tables],
    }


def document(entries: Document) -> Document:
    """The whole document, experiments in the paper's order, then those of one's own."""
    ordered = {name: entries[name] for name in NAMES if name in entries} | entries
    return {"rappor": __version__, "experiments": ordered}


def merged(directory: Path, entries: Document) -> Document:
    """The document with what earlier runs left in the directory and this one did not replace."""
    try:
        earlier = json.loads((directory / FILE).read_text(encoding="utf-8"))["experiments"]
        kept = {name: old for name, old in earlier.items() if _is_sound(old)}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        kept = {}  # nothing there, or nothing of ours
    return document(kept | entries)


_TYPES: dict[str, tuple[type, ...]] = {
    "title": (str,),
    "source": (str,),
    "stand_in": (str,),
    "seeds": (int,),
    "seconds": (int, float),
    "failed": (str, type(None)),
    "page": (str,),
    "comparisons": (list,),
}
_WORDS = ("what", "published", "ours", "verdict", "why")


def _is_sound(old: Any) -> bool:
    """Whether an entry read from a file is one that `entry` could have made."""
    words = [comparison[word] for comparison in old["comparisons"] for word in _WORDS]
    words.append(old.get("replicates", ""))  # which early files do not have
    words += [each[word] for each in old.get("figures", []) for word in ("name", "caption")]
    return all(isinstance(old[key], types) for key, types in _TYPES.items()) and all(
        isinstance(word, str) for word in words
    )


def verdict_words(item: Document) -> str:
    """An experiment's verdicts in a few words.

    >>> verdict_words({"failed": None, "comparisons": [{"verdict": "agrees"}] * 3})
    '3 agree'
    >>> verdict_words(
    ...     {"failed": None, "comparisons": [{"verdict": "extra"}, {"verdict": "agrees"}]}
    ... )
    '1 agrees, 1 not in the paper'
    """
    if item["failed"] is not None:
        return "failed"
    verdicts = [comparison["verdict"] for comparison in item["comparisons"]]
    counted = [
        f"{verdicts.count(verdict)} {word}{'s' * (verdicts.count(verdict) == 1)}"
        for verdict, word in (("agrees", "agree"), ("differs", "differ"))
        if verdict in verdicts
    ]
    if "extra" in verdicts:
        counted.append(f"{verdicts.count('extra')} not in the paper")
    return ", ".join(counted) or "nothing to compare"
