"""All attacks by name: what each finding holds, whatever the parameters."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

import rappor
from rappor import Params, ParamsError
from rappor.attack import ATTACKS, AttackFigure, run
from rappor.attack.result import Bound, max_belief, percent, share_figure
from support.code_blocks import blocks

DOCS = Path(__file__).parents[3] / "docs"

NAMES = [
    "single",
    "window",
    "unlimited",
    "averaging",
    "alternating",
    "change",
    "linkage",
    "targeting",
    "secrets",
    "fdr",
    "posterior",
    "poisoning",
]
FEW = {"linkage": 2, "change": 10, "alternating": 20}
CORNERS = {
    "no permanent step": Params(16, 2, 1, 0.0, 0.25, 0.75),
    "no instantaneous step": Params(16, 2, 1, 0.5, 0.0, 1.0),
    "p = 0": Params(16, 2, 1, 0.5, 0.0, 0.5),
    "q = 1": Params(16, 2, 1, 0.5, 0.5, 1.0),
    "two bits": Params(2, 1, 1, 0.5, 0.5, 0.75),
    "nearly all bits": Params(17, 16, 1, 0.5, 0.5, 0.75),
}


@pytest.mark.parametrize("name", NAMES)
def test_an_attack_has_a_section_and_a_proof(name: str) -> None:
    assert f"\n## {name}\n" in (DOCS / "attacks.md").read_text(encoding="utf-8")
    assert f"`{name}`" in (DOCS / "theory" / "attacks.md").read_text(encoding="utf-8")


def test_the_attack_of_the_guide_is_one() -> None:
    (block,) = (
        block
        for block in blocks(DOCS / "extend.md")
        if block.marks.get("run by") == "tests/unit/attack/test_registry.py"
    )
    names: dict[str, Any] = {"__name__": "any_bit"}
    exec(compile(block.code, "extend.md", "exec"), names)
    found = names["attack"](Params.preset("windows"))
    assert found.exact == pytest.approx(0.8897, abs=5e-5)
    assert found.sigmas < 4
    assert found.bound.holds(found.exact)
    other = names["false_share"](Params.preset("chrome"), 0.1)
    assert abs(found.simulated - other) > 4 * found.std_error


def test_the_attacks_are_these() -> None:
    assert list(ATTACKS) == NAMES
    assert rappor.attack.run is run


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("corner", CORNERS)
def test_every_attack_works_at_the_corners_and_respects_epsilon(name: str, corner: str) -> None:
    found = run(name, CORNERS[corner], trials=FEW.get(name, 200), seed=3)
    assert found.name == name
    assert found.sees
    assert found.does
    assert found.title
    assert found.meaning.endswith(".")
    assert all(math.isfinite(figure.exact) for figure in found.figures)
    assert found.bound is None or found.bound.holds(found.exact)
    json.dumps(found.to_dict(), default=str)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_seed_repeats_a_run_and_another_changes_it(name: str) -> None:
    params = Params(16, 2, 1, 0.5, 0.5, 0.75)
    settings = {"trials": 5 if name == "linkage" else 3000}
    one, again, other = (run(name, params, seed=seed, **settings) for seed in (1, 1, 2))
    assert one == again
    assert [figure.exact for figure in one.figures] == [figure.exact for figure in other.figures]
    assert one.figures != other.figures


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_settings_are_those_that_were_asked_for(name: str) -> None:
    settings = dict(ATTACKS[name].settings) | {"trials": FEW.get(name, 50)}
    found = run(name, Params(16, 2, 1, 0.5, 0.5, 0.75), **settings)
    assert found.settings == pytest.approx(settings)


def test_names_and_settings_that_do_not_exist_are_refused() -> None:
    with pytest.raises(ParamsError, match=r"did you mean window\?"):
        run("windw", Params.preset("windows"))
    with pytest.raises(ParamsError, match="attack single has no setting secrets; it has trials"):
        run("single", Params.preset("windows"), secrets=2)
    with pytest.raises(ParamsError, match=r"params must be rappor\.Params"):
        run("fdr", None)  # type: ignore[arg-type]
    for trials in (0, 1, -5, 1.5, None):
        with pytest.raises(ParamsError, match="trials must be a whole number"):
            run("single", Params.preset("windows"), trials=trials)


def test_distance_is_in_standard_errors_and_certainties_must_be_met() -> None:
    assert AttackFigure("x", 0.5, 0.6, 0.05).sigmas == pytest.approx(2)
    assert AttackFigure("x", 0.5, 0.6, 0.03, 0.04).sigmas == pytest.approx(2)
    assert AttackFigure("x", 1.0, 1.0, 0.0).sigmas == 0
    assert AttackFigure("x", 1.0, 0.9, 0.0).sigmas == math.inf
    assert AttackFigure("x", 1.0).sigmas == 0
    assert share_figure("x", 0.0, 1, 10).sigmas == math.inf


def test_a_bound_knows_its_side() -> None:
    assert Bound("ε1", 1.0, 0.7).holds(0.7)
    assert not Bound("ε1", 1.0, 0.7).holds(0.71)
    assert Bound("ε1", 1.0, 0.7, least=True).holds(0.71)
    assert not Bound("ε1", 1.0, 0.7, least=True).holds(0.69)
    assert max_belief(math.inf) == 1.0
    assert max_belief(1.0, 0.0) == 0.0
    assert max_belief(1.0, 1.0) == 1.0


def test_a_share_below_one_is_never_called_all() -> None:
    assert percent(0.5) == "50 %"
    assert percent(0.99954) == "99.95 %"
    assert percent(1 - 1e-12) == "more than 99.99 %"
    assert percent(1.25) == "125 %"
    assert percent(1.0) == "100 %"
