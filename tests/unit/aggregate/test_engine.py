"""Which engine runs, and what happens where machine code cannot be kept or ours is broken."""

import sys
from typing import Any

import numba
import pytest

from rappor.aggregate import _engine


def test_where_nothing_can_be_written_functions_compile_in_each_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def read_only(**options: Any) -> Any:
        asked.append(options.get("cache", False))
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return compile_function(**options)

    compile_function = numba.njit
    with monkeypatch.context() as patch:
        patch.setattr(numba, "njit", read_only)
        function = _engine.compiled(lambda number: number + 1)
    assert function(2) == 3
    assert asked == [True, False]


def test_a_fault_of_our_own_is_not_taken_for_the_absence_of_numba() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        _engine.load.__wrapped__("no_such_module")


def test_without_numba_there_is_no_compiled_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    assert _engine.load.__wrapped__("kernel_numba") is None
