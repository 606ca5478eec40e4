"""All attacks by name, and how to run one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rappor.attack import change, fdr, linkage, observers, poisoning, posterior, secrets, targeting
from rappor.attack.result import AttackResult
from rappor.attack.seen_fields import PUBLIC
from rappor.checks import did_you_mean, show
from rappor.errors import ParamsError
from rappor.mechanism.views import Views
from rappor.params import Params

_VIEWS = "views"  # an argument that is no setting: the collection decides it


@dataclass(frozen=True, slots=True)
class Attack:
    """An attack that can be run.

    Attributes:
        name: what it is called.
        about: one line on what it does.
        run: the function; its keyword arguments are the attack's settings.
        settings: their names and default values.
        has_views: whether the figures of a tuple depend on its views; `run` takes them then.
    """

    name: str
    about: str
    run: Callable[..., AttackResult]
    settings: Mapping[str, int | float]
    has_views: bool = False


def _attack(name: str, about: str, run: Callable[..., AttackResult]) -> Attack:
    given = dict(run.__kwdefaults__ or {})
    settings = {key: value for key, value in given.items() if key != _VIEWS}
    return Attack(name, about, run, settings, _VIEWS in given)


ATTACKS: dict[str, Attack] = {
    attack.name: attack
    for attack in (
        _attack("single", "one report: which of two values is it?", observers.single),
        _attack("window", "n reports of one value: which of two is it?", observers.window),
        _attack("unlimited", "any number of reports: B' is known", observers.unlimited),
        _attack("averaging", "many reports, with and without a memo", observers.averaging),
        _attack("alternating", "a value that alternates a, b, a, b", observers.alternating),
        _attack("change", "did the value change between two windows?", change.attack),
        _attack("linkage", "which two windows are the same client's?", linkage.attack),
        _attack("targeting", "one person or a small group singled out", targeting.attack),
        _attack("secrets", "several secrets or devices of one person", secrets.attack),
        _attack("fdr", "picking out the clients that hold a value", fdr.attack),
        _attack("posterior", "how probable a value is after one report", posterior.attack),
        _attack("poisoning", "forged reports that push a value up", poisoning.attack),
    )
}


def find(name: str) -> Attack:
    """The named attack, or ParamsError with the nearest name."""
    if isinstance(name, str) and name in ATTACKS:
        return ATTACKS[name]
    hint = did_you_mean(name, ATTACKS)
    raise ParamsError(f"attack must be one of {', '.join(ATTACKS)}; got {show(name)}{hint}")


def run(name: str, params: Params, *, views: Views | None = None, **settings: Any) -> AttackResult:
    """Run the named attack with its default settings, or with those given.

    Args:
        name: the attack.
        params: the parameters attacked.
        views: `Collection.tuple_views`, for a collection of kind tuple.
        settings: see `Attack.settings`.

    >>> round(run("unlimited", Params.preset("chrome"), trials=1000).exact, 4)
    0.6836
    """
    chosen = find(name)
    unknown = [setting for setting in settings if setting not in chosen.settings]
    if unknown:
        raise ParamsError(
            f"attack {name} has no setting {', '.join(unknown)}; "
            f"it has {', '.join(chosen.settings)}"
        )
    if views is None:
        return chosen.run(params, **settings)
    given = {_VIEWS: views} if chosen.has_views else {}
    found = chosen.run(params, **given, **settings)
    return replace(found, sees=f"{found.sees}; {PUBLIC}")
