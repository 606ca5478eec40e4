"""Copy as Python: the code that gives the numbers of a view (executed by a test)."""

from __future__ import annotations

from rappor.collection import Collection
from rappor.dashboard.settings import STATE_FILE
from rappor.dashboard.view import Side, View


def python_code(view: View, collection: Collection) -> str:
    """A script; the only thing to be changed in it is where the data folder is."""
    strings = collection.kind == "string"
    lines = [
        "from pathlib import Path",
        "",
        "import rappor",
        "from rappor.aggregate.stored_counts import sum_cells",
        "from rappor.collection import Collection",
        *(["from rappor.dashboard.state import State"] if strings else []),
        "from rappor.store import open_store",
        "",
        'DATA = Path("data")  # the data folder: change it where yours is another',
        "",
        "store = open_store(DATA, read_only=True)",
        "saved = {(each.collection, each.version): each.toml for each in store.definitions()}",
        f"collection = Collection.from_toml(saved[{view.collection!r}, {view.version}])",
        "",
        "",
        "def counts_of(periods, dimensions):",
        "    cells = store.counts(collection.name, collection.version, periods=periods)",
        "    wanted = set(dimensions.items())",
        "    cells = [cell for cell in cells if wanted <= set(cell.cell.pairs)]",
        "    return sum_cells(cells, collection)",
        "",
        "",
        f"counts = counts_of({_arguments(view.side)})",
    ]
    if strings:
        listed = f"State(DATA / {STATE_FILE!r}).candidates({view.collection!r}, {view.candidates})"
        lines.append(f"candidates = {listed}.strings")
    else:
        lines.append("candidates = collection.categories or collection.ranges")
    how = f"correction={view.correction!r}, alpha={view.alpha!r}"
    method = f", method={view.method!r}" if strings else ""
    lines.append(f"found = rappor.decode(counts, candidates, {how}{method})")
    if view.against is not None:
        lines += [
            f"others = counts_of({_arguments(view.against)})",
            f"other = rappor.decode(others, candidates, {how}{method})",
            f"compared = rappor.compare(counts[0], others[0], candidates, {how})",
        ]
    lines.append("store.close()")
    shown = "compared.different" if view.against is not None else "found.detected"
    number = "difference" if view.against is not None else "proportion"
    lines += ["", f"for row in {shown}:", f"    print(row.string, row.{number})"]
    return "\n".join(lines) + "\n"


def _arguments(side: Side) -> str:
    return f"{list(side.periods)!r}, {dict(side.dimensions)!r}"


def report_code(collection: Collection, collector: str | None) -> str:
    """A script that sends one report, to see one arrive."""
    file = f"{collection.name}.toml"
    address = collection.upload or collector or "http://127.0.0.1:8765"
    values = {"category": collection.categories or ("",), "boolean": (True,), "ordinal": (1,)}
    value = values.get(collection.kind, ("example.org",))[0]
    return "\n".join(
        [
            "import rappor",
            "",
            "client = rappor.Client.open(",
            '    "test-client",  # a folder, made now',
            f"    [{file!r}],",
            "    consent=True,",
            f"    upload_to={address!r},",
            ")",
            f"client.report({collection.name!r}, {value!r})",
            "client.close()",
            "",
        ]
    )
