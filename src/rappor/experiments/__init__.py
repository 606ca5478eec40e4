"""The paper's figures and tables, one folder each.

`NAMES` in the paper's order; `load(name)` imports an experiment when it is asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from rappor.checks import did_you_mean, show
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
    """Raise ParamsError for an unknown experiment, with the nearest name."""
    if not isinstance(name, str) or name not in NAMES:
        hint = did_you_mean(name, NAMES) or f"; there are {', '.join(NAMES)}"
        raise ParamsError(f"no experiment is called {show(name)}{hint}")


def load(name: str) -> Experiment:
    """The experiment of this name.

    >>> load("life-of-a-report").source
    'Figure 1, §2'
    """
    check_name(name)
    module = importlib.import_module(f"rappor.experiments.{name.replace('-', '_')}.experiment")
    experiment: Experiment = module.EXPERIMENT
    return experiment
