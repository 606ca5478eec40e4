"""Replicates: the same results in order, whatever runs them, and their spread."""

from __future__ import annotations

import functools
import math
import os

import pytest

from rappor.errors import ParamsError
from rappor.experiments import seeds as module
from rappor.experiments.seeds import FEW, PROCESSES, mean_sd, replicate, spread
from support.outcomes import silent
from support.processes import die_unless, fail_unless, process_id, threads

MANY = 12


@pytest.mark.slow
def test_two_processes_give_what_one_gives_in_the_order_of_seeds() -> None:
    side_by_side = replicate(math.sqrt, MANY, silent, "roots")
    assert side_by_side == [math.sqrt(seed) for seed in range(1, MANY + 1)]


@pytest.mark.slow
def test_many_seeds_run_in_other_processes_and_few_in_this_one() -> None:
    assert set(replicate(process_id, FEW - 1, silent, "few")) == {os.getpid()}
    others = set(replicate(process_id, MANY, silent, "many"))
    assert os.getpid() not in others
    assert len(others) <= PROCESSES


@pytest.mark.slow
def test_other_processes_have_one_thread_each_and_this_one_is_left_alone() -> None:
    before = os.environ.get("OPENBLAS_NUM_THREADS")
    assert set(replicate(threads, MANY, silent, "threads")) == {"1"}
    assert os.environ.get("OPENBLAS_NUM_THREADS") == before


@pytest.mark.slow
def test_where_processes_are_killed_seeds_run_one_by_one_and_it_is_said() -> None:
    told: list[str] = []
    fragile = functools.partial(die_unless, os.getpid())
    assert replicate(fragile, MANY, told.append, "fragile") == list(range(1, MANY + 1))
    assert "fragile: a process ended abruptly; seeds run one after the other" in told


def test_seeds_can_be_listed() -> None:
    assert replicate(math.sqrt, [4, 9], silent, "roots") == [2, 3]


@pytest.mark.slow
def test_progress_counts_up_to_all_seeds() -> None:
    told: list[str] = []
    replicate(math.sqrt, MANY, told.append, "roots")
    assert told[0] == f"roots: 0 of {MANY} seeds"
    assert told[-1] == f"roots: {MANY} of {MANY} seeds"


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [[1, -1], [1, 2, 3, 4, -1, 6, 7, 8]])
def test_a_failure_under_one_seed_is_raised(seeds: list[int]) -> None:
    with pytest.raises(ValueError, match=r"math domain|nonnegative"):
        replicate(math.sqrt, seeds, silent, "roots")


@pytest.mark.slow
@pytest.mark.parametrize(
    "error", [OSError("no such file"), PermissionError("not yours"), ImportError("no such module")]
)
def test_an_experiments_own_error_is_raised_and_no_seed_run_again(error: Exception) -> None:
    """In this process the same seeds would do, so that running them again would hide the error."""
    told: list[str] = []
    with pytest.raises(type(error), match=str(error)):
        replicate(functools.partial(fail_unless, os.getpid(), error), MANY, told.append, "failing")
    assert not [line for line in told if "one after the other" in line]


@pytest.mark.parametrize("error", [OSError("no semaphores"), ImportError("no _multiprocessing")])
@pytest.mark.parametrize("name", ["__init__", "submit"])
def test_where_processes_cannot_start_seeds_run_one_by_one_and_it_is_said(
    monkeypatch: pytest.MonkeyPatch, error: Exception, name: str
) -> None:
    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr(module.ProcessPoolExecutor, name, refuse)
    told: list[str] = []
    assert replicate(math.sqrt, MANY, told.append, "roots")[-1] == math.sqrt(MANY)
    line = f"roots: processes cannot be started ({error}); seeds run one after the other"
    assert line in told


def test_no_seeds_are_refused() -> None:
    with pytest.raises(ParamsError, match="seeds"):
        replicate(math.sqrt, 0, silent, "roots")


def test_spread_is_that_of_a_sample() -> None:
    found = spread([2, 4, 4, 4, 5, 5, 7, 9])
    assert found.mean == 5
    assert found.sd == pytest.approx(math.sqrt(32 / 7))
    assert found.se == pytest.approx(math.sqrt(32 / 7 / 8))


def test_one_value_has_no_spread() -> None:
    with pytest.raises(ParamsError, match="at least 2"):
        spread([1.0])


@pytest.mark.parametrize(
    ("values", "form", "unit", "text"),
    [
        ([1.0, 2.0, 3.0], None, "", "2.0 ± 1.0 (3 seeds)"),
        ([12_000, 12_100, 12_200], None, "", "12,100 ± 100 (3 seeds)"),
        ([0.001, 0.002, 0.003], None, " %", "0.0020 ± 0.0010 % (3 seeds)"),
        ([5.0, 5.0], None, "", "5 ± 0 (2 seeds)"),
        ([1.26, 1.28], ".1f", "", "1.3 ± 0.0 (2 seeds)"),
    ],
)
def test_mean_and_spread_are_shown_with_matching_places(
    values: list[float], form: str | None, unit: str, text: str
) -> None:
    assert mean_sd(values, form, unit) == text
