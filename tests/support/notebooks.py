"""Execute the notebooks of docs/tutorials, each in an empty folder.

`make notebooks` runs this file, which writes what the cells print back into the notebooks.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from nbclient import NotebookClient

nbformat: Any = importlib.import_module("nbformat")  # it is published with half of its types

LIMIT = 300  # seconds: ends a cell that hangs, says nothing about how fast one is
# A cell with this tag prints something else in each run: clients toss real coins.
VARIES = "varies"
# Of a chart, only the picture is kept: a page can show it without scripts.
KEPT = ("image/svg+xml", "text/html", "text/plain")


def read(path: Path) -> Any:
    """A notebook as it is stored."""
    return nbformat.read(path, as_version=4)


def execute(path: Path, folder: Path) -> Any:
    """Run a notebook's cells in a folder; returns it with the new outputs."""
    notebook = read(path)
    # The commands of this environment are the first that a cell finds.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    resources = {"metadata": {"path": str(folder)}}
    client = NotebookClient(notebook, timeout=LIMIT, record_timing=False, resources=resources)
    client.execute()
    notebook.metadata = {
        "kernelspec": {"name": "python3", "display_name": "Python 3"},
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if "data" in output:
                output["data"] = {
                    name: output["data"][name] for name in KEPT if name in output["data"]
                }
                output["metadata"] = {}
    return notebook


def printed(cell: Any) -> list[str]:
    """What a cell shows as text; of a picture, that it is there."""
    shown = []
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        if "image/svg+xml" in data:
            shown.append("a picture")
        else:
            shown.append(output.get("text") or data.get("text/html") or data.get("text/plain"))
    return shown


def differences(stored: Any, executed: Any) -> list[str]:
    """The cells that show something else than what is stored, except those that always do."""
    return [
        f"{new.source}\nshows {printed(new)}\nstored {printed(old)}"
        for old, new in zip(stored.cells, executed.cells, strict=True)
        if VARIES not in old.metadata.get("tags", []) and printed(old) != printed(new)
    ]


def main() -> None:
    """Execute the notebooks that are named on the command line, and store their outputs.

    With --check nothing is stored: a cell that shows something else than what is stored ends this
    with an error.
    """
    names = [name for name in sys.argv[1:] if name != "--check"]
    for name in names:
        with tempfile.TemporaryDirectory(prefix="rappor-notebook-") as folder:
            executed = execute(Path(name), Path(folder))
        if "--check" not in sys.argv:
            nbformat.write(executed, name)
        elif found := differences(read(Path(name)), executed):
            sys.exit("\n\n".join([name, *found, "If this is right: make notebooks"]))


if __name__ == "__main__":
    main()
