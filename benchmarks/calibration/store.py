"""Results on disk: one line of JSON for every (scenario, seed, method), so that a run can continue.

Files are named by a digest of the code that the figures depend on: those of another decoder are
left alone and not mixed in.
"""

from __future__ import annotations

import ast
import hashlib
import json
import sys
from pathlib import Path

from calibration.measure import Record

_PARTS = ("rappor.decoding", "rappor.simulate", "calibration.")
_NOT = ("calibration.store", "calibration.summary", "calibration.rules", "calibration.report")


class Store:
    """The results of one decoder in one folder."""

    def __init__(self, folder: Path, digest: str, same_names: bool) -> None:
        """Name the files; none is written yet."""
        self._folder = folder
        self._ending = f"{'same-' if same_names else ''}{digest}.jsonl"

    def path(self, scenario: str) -> Path:
        return self._folder / f"{scenario}-{self._ending}"

    def add(self, record: Record) -> None:
        """Append a result, whole or not at all as far as readers can tell."""
        path = self.path(record["scenario"])
        path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps(record, separators=(",", ":"))
        with path.open("a", encoding="utf-8") as out:
            out.write(line + "\n")

    def read(self, scenario: str) -> list[Record]:
        """All results of a scenario by method and seed, each once; cut-off lines are skipped."""
        path = self.path(scenario)
        if not path.exists():
            return []
        text = path.read_text("utf-8")
        if text and not text.endswith("\n"):  # a run was stopped while it wrote
            path.write_text(text[: text.rfind("\n") + 1], "utf-8")
        found = {}
        for line in text.splitlines():
            try:
                record = json.loads(line)
            except json.JSONDecodeError:
                continue
            found[record["method"], record["seed"]] = record
        return [found[key] for key in sorted(found)]


def code_digest() -> str:
    """A digest of the modules that are loaded and decide the figures.

    Of what they do: comments, docstrings and layout do not count, so that a formatter does not
    cost an hour of results.
    """
    digest = hashlib.sha256()
    for name, module in sorted(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file is None or not name.startswith(_PARTS) or name in _NOT:
            continue
        tree = ast.parse(Path(file).read_text("utf-8"))
        digest.update(f"{name}\n{ast.dump(_without_docstrings(tree))}\n".encode())
    return digest.hexdigest()[:12]


def _without_docstrings(tree: ast.AST) -> ast.AST:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        node.body = [  # type: ignore[attr-defined]
            each
            for each in body
            if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
        ]
    return tree
