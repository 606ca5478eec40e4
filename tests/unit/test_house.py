"""The house stays in order: class names with one meaning, files that are not confused."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "rappor"
FILES = sorted(PACKAGE.rglob("*.py"))
MAX_SHARED_CLASS_NAMES = 5


def test_a_class_name_means_one_thing() -> None:
    modules = defaultdict(set)
    for file in FILES:
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                modules[node.name].add(str(file.relative_to(PACKAGE)))
    shared = {name: sorted(where) for name, where in modules.items() if len(where) > 1}
    assert len(shared) <= MAX_SHARED_CLASS_NAMES, shared


def test_source_cites_the_paper_and_not_a_list_of_requirements() -> None:
    cited = [
        f"{file.relative_to(PACKAGE)}:{number}: {line.strip()}"
        for file in [*FILES, *PACKAGE.rglob("*.html"), *PACKAGE.rglob("*.js")]
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(r"\bR[0-9]{1,2}\b", line)
    ]
    assert cited == []


def stem(name: str) -> str:
    """A file's name without the endings that make two names hard to tell apart."""
    return re.sub(r"(ing|ed|es|s|e)$", "", name.strip("_"))


def test_no_two_files_of_a_folder_have_names_that_are_easily_confused() -> None:
    names = defaultdict(list)
    for file in FILES:
        names[file.parent.relative_to(PACKAGE), stem(file.stem)].append(file.stem)
    confused = {str(folder): found for (folder, _), found in names.items() if len(found) > 1}
    assert confused == {}


def test_arrays_of_numbers_are_typed_in_one_place() -> None:
    again = [
        str(file.relative_to(PACKAGE))
        for file in FILES
        if file.name != "typing.py"
        and re.search(r"^FloatArray\b.*=", file.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert again == []
