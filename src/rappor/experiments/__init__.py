"""The paper's figures and tables, one folder each, and experiments of one's own.

`NAMES` are those of the paper, in its order; `load(name)` imports an experiment when it is asked
for. An experiment is added by dropping a folder: next to these, or into a folder of your own that
`names` and `load` are given. docs/reproduce.md has the steps.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
TEMPLATE = "template"
FILE = "experiment.py"
_HERE = Path(__file__).parent

__all__ = ["NAMES", "check_name", "load", "names", "new_folder"]


def names(folder: Path | None = None) -> tuple[str, ...]:
    """The experiments of the paper, then others in this package, then those in a folder."""
    found = [*NAMES]
    for place in (_HERE, folder):
        found += [name for name in _dropped(place) if name not in found]
    return tuple(found)


def check_name(name: str, folder: Path | None = None) -> None:
    """Raise ParamsError for an unknown experiment, with the nearest name."""
    known = names(folder)
    if not isinstance(name, str) or name not in known:
        hint = did_you_mean(name, known) or f"; there are {', '.join(known)}"
        raise ParamsError(f"no experiment is called {show(name)}{hint}")


def load(name: str, folder: Path | None = None) -> Experiment:
    """The experiment of this name.

    Args:
        name: one of `names(folder)`.
        folder: experiments of one's own, a folder for each.

    Raises:
        ParamsError: there is no such experiment, or its folder is not complete.

    >>> load("life-of-a-report").source
    'Figure 1, §2'
    """
    check_name(name, folder)
    stem = name.replace("-", "_")
    if folder is None or (_HERE / stem / FILE).exists():
        module: Any = importlib.import_module(f"rappor.experiments.{stem}.experiment")
    else:
        module = _own(stem, folder)
    return _complete(getattr(module, "EXPERIMENT", None), name)


def new_folder(name: str, folder: Path) -> Path:
    """Write the folder of a new experiment from the template; return its experiment.py.

    Raises:
        ParamsError: the name is taken, or is not fit for a folder that Python imports.
    """
    from rappor.files import write_text

    stem = name.replace("-", "_")
    if not (stem.isidentifier() and stem == stem.lower()) or "_" in name:
        raise ParamsError(
            f"an experiment needs a name in small letters, such as two-peaks; got {show(name)}"
        )
    taken = name in names(folder) or name == TEMPLATE
    if taken or importlib.util.find_spec(stem) is not None or (folder / stem).exists():
        raise ParamsError(f"{show(name)} is taken already; choose another name")
    text = (_HERE / TEMPLATE / FILE).read_text(encoding="utf-8")
    (folder / stem).mkdir(parents=True)
    write_text(folder / stem / "__init__.py", f'"""The experiment {name}."""\n')
    file = folder / stem / FILE
    write_text(file, text.replace(f'name="{TEMPLATE}"', f'name="{name}"'))
    return file


def _dropped(place: Path | None) -> list[str]:
    """The experiments whose folders are here, by name."""
    if place is None:
        return []
    stems = sorted(file.parent.name for file in place.glob(f"*/{FILE}"))
    return [stem.replace("_", "-") for stem in stems if place != _HERE or stem != TEMPLATE]


def _own(stem: str, folder: Path) -> Any:
    """The module in a folder of one's own; processes that run seeds import it by the same name."""
    path = str(folder.resolve())
    if path not in sys.path:
        sys.path.insert(0, path)
    found = importlib.util.find_spec(stem)
    where = [] if found is None else [*(found.submodule_search_locations or ())]
    if [str(Path(place).resolve()) for place in where] != [str(Path(path) / stem)]:
        raise ParamsError(
            f"the name {show(stem)} belongs to another package; rename the folder, and the "
            "experiment in it"
        )
    return importlib.import_module(f"{stem}.experiment")


def _complete(experiment: Any, name: str) -> Experiment:
    """The experiment; ParamsError says what its folder lacks."""
    from rappor.experiments.experiment import Experiment

    if not isinstance(experiment, Experiment):
        lacks = f"experiment.py must define EXPERIMENT, an Experiment; got {show(experiment)}"
    elif experiment.name != name:
        lacks = f"its name must be that of its folder; got {show(experiment.name)}"
    elif empty := [part for part in ("title", "source", "about") if not getattr(experiment, part)]:
        lacks = f"{empty[0]} is empty: say it in a few words"
    else:
        return experiment
    raise ParamsError(f"the experiment {name} is not complete: {lacks}")
