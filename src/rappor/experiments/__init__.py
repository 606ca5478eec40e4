"""The paper's figures and tables, one folder each.

`NAMES` in the paper's order; `load(name)` imports an experiment when it is asked for.
"""

from __future__ import annotations

import difflib
import importlib
from typing import TYPE_CHECKING

from rappor.checks import show
from rappor.errors import ParamsError

if TYPE_CHECKING:
    from rappor.experiments.experiment import Experiment

NAMES = (
    "life-of-a-report",
    "recall-precision",
    "learnable",
    "normal",
    "exponential",
    "windows",
    "chrome",
    "fdr",
    "posterior",
)

__all__ = ["NAMES", "check_name", "load"]


def check_name(name: str) -> None:
    """Refuse what is no experiment's name, with the nearest that is."""
    if not isinstance(name, str) or name not in NAMES:
        near = difflib.get_close_matches(str(name), NAMES, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(NAMES)}"
        raise ParamsError(f"no experiment is called {show(name)}; {hint}")


def load(name: str) -> Experiment:
    """The experiment of this name.

    >>> load("life-of-a-report").source
    'Figure 1, §2'
    """
    check_name(name)
    module = importlib.import_module(f"rappor.experiments.{name.replace('-', '_')}.experiment")
    experiment: Experiment = module.EXPERIMENT
    return experiment
