"""Run a program of the base install as Windows would: `python windows.py FACTS PROGRAM`.

What Windows lacks is read from the type stubs of the standard library, which come with mypy
(`lacking`). A process of its own then takes it away from the modules of rappor, and from them only:
modules that are POSIX's own cannot be imported, functions and constants of `os`, `signal` and other
modules are missing, and `sys.platform` is "win32". The file system underneath is still this one's;
the type checker, told the platform, checks what calls on Windows look like.
"""

from __future__ import annotations

import ast
import json
import os
import runpy
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

SOURCE = Path(__file__).parents[2] / "src"
PARTLY = ("errno", "os", "select", "signal", "socket", "time")  # modules that lack some names
LIMIT = 300  # seconds: ends a process that hangs


def lacking(stubs: Path) -> dict[str, Any]:
    """What Windows lacks: whole modules, and names of those in `PARTLY`, from stubs of typeshed."""
    modules = sorted(
        file.stem for file in stubs.glob("*.pyi") if _all_posix(ast.parse(file.read_text("utf-8")))
    )
    names = {}
    for module in PARTLY:
        file = stubs / f"{module}.pyi"
        tree = ast.parse((file if file.exists() else stubs / module / "__init__.pyi").read_text())
        names[module] = sorted(set(_posix_names(tree.body)) - set(_names(_on_windows(tree.body))))
    return {"modules": modules, "names": names}


def _all_posix(tree: ast.Module) -> bool:
    """Whether a stub declares something, and nothing public of it for Windows."""
    here = {name for name in _names(_on_windows(tree.body, imports=False)) if name[0] != "_"}
    return not here and any(True for _ in _posix_names(tree.body))


def _branches(node: ast.If) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """What a test of the platform keeps for Windows, and what it keeps from it."""
    test = ast.unparse(node.test)
    if "sys.platform == 'win32'" in test:
        return node.body, node.orelse
    others = ("sys.platform != 'win32'", "sys.platform == 'linux'", "sys.platform == 'darwin'")
    if any(other in test for other in others):
        return node.orelse, node.body
    return [*node.body, *node.orelse], []


def _on_windows(body: Iterable[ast.stmt], imports: bool = True) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, ast.If):
            yield from _on_windows(_branches(node)[0], imports)
        elif imports or not isinstance(node, ast.ImportFrom):
            yield node


def _posix_names(body: Iterable[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.If):
            windows, others = _branches(node)
            yield from _posix_names(windows)
            yield from _names(
                child
                for other in others
                for child in ast.walk(other)
                if isinstance(child, ast.stmt)
            )


def _names(nodes: Iterable[ast.stmt]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)


def run(facts: Path, program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program as Windows would, with the standard library and the source of rappor only."""
    return subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-W", "error", __file__, facts, program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )


class _Partly(ModuleType):
    """A module of the standard library without some of its names."""

    def __init__(self, real: ModuleType, hidden: Iterable[str], **changed: object) -> None:
        super().__init__(real.__name__)
        self.__dict__.update(_real=real, _hidden=frozenset(hidden), **changed)

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__["_hidden"]:
            raise AttributeError(f"Windows has no {self.__name__}.{name}")
        return getattr(self.__dict__["_real"], name)


class _NoModules:
    """An importer that refuses the modules that Windows lacks."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = frozenset(names)

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> None:
        """Refuse, or leave it to the others."""
        if name in self.names:
            raise ModuleNotFoundError(f"Windows has no module {name}", name=name)


def _msvcrt() -> ModuleType:
    """A stand-in for the module that locks files on Windows, over this system's locks."""
    import fcntl

    module = ModuleType("msvcrt")

    def locking(descriptor: int, mode: int, _count: int) -> None:
        fcntl.lockf(descriptor, (fcntl.LOCK_EX | fcntl.LOCK_NB) if mode else fcntl.LOCK_UN)

    module.__dict__.update(LK_UNLCK=0, LK_NBLCK=2, locking=locking)
    return module


def become_windows(facts: dict[str, Any]) -> None:
    """From now on, modules of rappor find what Windows has."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "rappor"]:
        del sys.modules[name]
    sys.modules["msvcrt"] = _msvcrt()
    for name in facts["modules"]:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, _NoModules(facts["modules"]))
    changed: dict[str, dict[str, object]] = {"os": {"name": "nt"}, "sys": {"platform": "win32"}}
    for name, hidden in (facts["names"] | {"sys": []}).items():
        real = sys.modules.get(name) or __import__(name)
        sys.modules[name] = _Partly(real, hidden, **changed.get(name, {}))


def main(arguments: Sequence[str]) -> None:
    """Run the program twice: here, which loads the standard library, then as on Windows."""
    facts, program, *rest = arguments
    sys.argv = [program, *rest]
    sys.path.insert(0, str(SOURCE))
    read = json.loads(Path(facts).read_text(encoding="utf-8"))
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        output, sys.stdout = sys.stdout, nowhere
        try:
            runpy.run_path(program, run_name="__main__")
        except SystemExit:
            pass
        finally:
            sys.stdout = output
    become_windows(read)
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
