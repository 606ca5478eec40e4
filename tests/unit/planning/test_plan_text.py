"""What print(plans) says: the words of `rappor plan`, and a short repr."""

import contextlib
import io
import math

import rappor
from rappor.cli.main import main
from rappor.planning.plan_text import judgement
from rappor.planning.power_check import Checked, PlanCheck


def test_print_gives_what_the_command_prints() -> None:
    found = rappor.plan(1.0743, 4.3944, reports=10**6, candidates=200, check=0)
    options = "--epsilon-one 1.0743 --epsilon-infinity 4.3944 --reports 1e6 --candidates 200"
    with contextlib.redirect_stdout(io.StringIO()) as command:
        assert main(["plan", *options.split(), "--check", "0"]) == 0
    with contextlib.redirect_stdout(io.StringIO()) as python:
        print(found)
    assert python.getvalue() == command.getvalue()
    assert repr(found) == f"<Plans {len(found)}, the best: {found.best.params}>"


def checked(*measured: float, strings: int = 160) -> PlanCheck:
    """A check of plans for 50, 80 and 95 %, with the standard errors of this many strings."""
    levels = [
        Checked(power, 0.01, found, math.sqrt(power * (1 - power) / strings), strings)
        for power, found in zip((0.5, 0.8, 0.95), measured, strict=True)
    ]
    return PlanCheck(20, tuple(levels))


def test_a_chance_of_half_that_was_measured_at_41_percent_is_below() -> None:
    found = checked(0.412, 0.79, 0.95)
    assert [level.verdict for level in found.levels] == ["below", "within", "within"]
    said = judgement(found, 200)
    assert said == (
        "They measured a chance below the planned chance of 50 %. Chance alone can do that: "
        "--check 200 measures more closely."
    )


def test_the_edges_of_the_judgement() -> None:
    error = math.sqrt(0.25 / 160)
    for deviation, verdict in ((-2.01, "below"), (-2, "within"), (2, "within"), (2.01, "above")):
        level = Checked(0.5, 0.01, 0.5 + deviation * error, error, 160)
        assert level.verdict == verdict, deviation
    for deviation, holds in ((-3.01, False), (-3, True), (3, True), (3.01, False)):
        assert checked(0.5 + deviation * error - deviation * 1e-12, 0.8, 0.95).holds is holds


def test_a_measurement_far_away_contradicts_the_plan() -> None:
    said = judgement(checked(0.2, 0.99, 0.95), 200)
    assert "below the planned chance of 50 % and above the planned chance of 80 %" in said
    assert "CONTRADICTS the plan: count on what was measured" in said


def test_measurements_as_near_as_chance_allows_say_so() -> None:
    said = judgement(checked(0.45, 0.8, 0.97), 200)
    assert said == "Every measured chance is within 2 standard errors of the planned one."
