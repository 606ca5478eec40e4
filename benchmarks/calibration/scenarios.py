"""The scenarios: populations, parameters and candidates, with the figures to reach."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rappor import Params

EXPONENTIAL = Params.preset("exponential")
WINDOWS = Params.preset("windows")
CHROME = Params.preset("chrome")


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is collected, from whom, and which strings are looked for.

    `shares` are those of all strings, `listed` says which of them are candidates, absent ones
    (share 0) included. A detection is false where the true share is at most `null_errors` standard
    errors. Of the reports of a client, each after the first has another value with the chance
    `change`. A regime is a place where an earlier decoder failed: all strings are listed, and every
    interval, the undetected mass and the checks of the result are judged.
    """

    name: str
    about: str
    params: Params
    reports: int
    shares: np.ndarray
    listed: np.ndarray
    dialect: str = "google"
    null_errors: float = 0.0
    repeats: int = 1
    change: float = 0.0
    uneven: bool = False
    regime: bool = False
    reach: tuple[float, float] | None = None
    oracle: tuple[float, float] | None = None
    paper: tuple[float, float] | None = None
    reference: str = ""


def exponential(mass: float = 1.0) -> np.ndarray:
    shares = 0.9505 ** np.arange(1, 101)
    return mass * shares / shares.sum()


def zipf(strings: int, power: float, shift: float = 0.0) -> np.ndarray:
    shares = (np.arange(1, strings + 1) + shift) ** -power
    return shares / shares.sum()


def with_absent(present: np.ndarray, absent: int) -> np.ndarray:
    return np.concatenate([present, np.zeros(absent)])


def all_listed(shares: np.ndarray, but: tuple[int, ...] = ()) -> np.ndarray:
    listed = np.ones(len(shares), bool)
    listed[list(but)] = False
    return listed


def _make(name: str, about: str, params: Params, reports: int, present, absent, **more) -> Scenario:
    missing = more.pop("missing", ())
    left_out = more.pop("left_out", ())
    shares = np.concatenate([present, np.zeros(absent), missing])
    size = len(present) + absent
    listed = all_listed(shares, (*left_out, *range(size, len(shares))))
    return Scenario(name, about, params, reports, shares, listed, **more)


FEW = (0.10, 0.06, 0.04, 0.03, 0.03, 0.02, 0.02)
CHROME_POPULATION = zipf(4000, 1.4)


def _all() -> list[Scenario]:
    small = Params(32, 2, 64, 0.0, 0.5, 0.75)
    smaller = Params(32, 2, 64, 0.0, 0.5, 0.634)
    one_hash = Params(128, 1, 16, 0.2001, 0.2239, 0.5307)
    found = [
        _make("S1", "exponential", EXPONENTIAL, 10**6, exponential(), 100,
              reach=(32.2, 43.5), oracle=(33.7, 45.3), paper=(31.5, 39.8), reference="44.9 / 3.6"),
        _make("S2", "Chrome-like", CHROME, 14 * 10**6, CHROME_POPULATION, 4616, null_errors=0.05,
              reach=(16, 18.5), oracle=(16.9, 19.7), paper=(15.5, 17.7), reference="17.4 / 3.2"),
        _make("S3", "Windows-like", WINDOWS, 186_792, zipf(1000, 1.6, 10), 1000, null_errors=0.05,
              reach=(7.0, 8.8), oracle=(8.2, 10.3), paper=(6.7, 8.3), reference="9.7 / 3.3"),
        _make("S4", "f = 0, eps = 2 ln 3", small, 10**5, exponential(), 100,
              reach=(22.7, 32.7), oracle=(24.3, 35.2), paper=(21.9, 29.7), reference="33.1 / 3.2"),
        _make("S4b", "f = 0, eps = ln 3", smaller, 10**5, exponential(), 100,
              reach=(10.7, 18), oracle=(12.2, 20.5), paper=(10.0, 15.4), reference="19.4 / 1.8"),
        _make("S5", "a million candidates", Params(128, 2, 64, 0.5, 0.5, 0.75), 10**8,
              zipf(20_000, 1.2), 980_000, dialect="rappor-v1", null_errors=0.05,
              reach=(58, 66), oracle=(59.9, 70.3), paper=(48, 48)),
        _make("S6b", "30 % missing from the list", EXPONENTIAL, 10**6, exponential(0.7), 100,
              missing=(0.3,),
              reach=(25.5, 35), oracle=(26.6, 37.4), paper=(7.6, 12.2), reference="45 / 19"),
        _make("S6d", "seven strings missing", EXPONENTIAL, 10**6, exponential(0.7), 100,
              missing=FEW,
              reach=(22.3, 31.5), oracle=(26.3, 37.2), paper=(17.3, 23.9), reference="48 / 17"),
        _make("S6e", "S2 without strings 1, 4, 8, 21", CHROME, 14 * 10**6, CHROME_POPULATION, 4616,
              null_errors=0.05, left_out=(0, 3, 7, 20),
              reach=(12.3, 14.3), oracle=(13.8, 15.9), paper=(4.3, 5.7), reference="12 / 90"),
        _make("S7", "cohorts in proportion to 1/j", EXPONENTIAL, 10**6, exponential(), 100,
              uneven=True, reach=(32, 42), paper=(25.7, 33.8)),
        _make("S8", "h = 1, a better design", one_hash, 10**6, exponential(), 100,
              reach=(41.5, 54.5), oracle=(42.3, 57)),
    ]  # fmt: skip
    for repeats in (10, 7, 30):
        found.append(
            _make(f"S9-{repeats}", f"each client reports {repeats} times", EXPONENTIAL,
                  10**5 * repeats, exponential(), 100, repeats=repeats)
        )  # fmt: skip
    return found


def _unseen() -> list[Scenario]:
    """Parameter sets and populations that no figure was made for: error rates must hold too."""
    return [
        _make("U1", "k = 64, h = 1", Params(64, 1, 32, 0.25, 0.3, 0.6), 300_000,
              exponential(), 100),
        _make("U2", "k = 256, h = 3", Params(256, 3, 8, 0.5, 0.25, 0.75), 200_000,
              exponential(), 100),
        _make("U3", "four cohorts", Params(128, 2, 4, 0.25, 0.4, 0.7), 500_000, exponential(), 100),
        _make("U4", "k = 16, 128 cohorts", Params(16, 1, 128, 0.3, 0.3, 0.7), 10**6,
              exponential(), 100),
        _make("U5", "strong signal, seven missing", Params(64, 2, 16, 0.25, 0.35, 0.65), 10**6,
              exponential(0.7), 100, missing=FEW),
        _make("U6", "two of 20 % missing, 8 cohorts", WINDOWS, 10**6, exponential(0.6), 1000,
              missing=(0.2, 0.2)),
        _make("U7", "50 equal strings of 5,050", EXPONENTIAL, 10**6, np.full(50, 0.02), 5000),
        _make("U8", "two cohorts", Params(128, 2, 2, 0.5, 0.5, 0.75), 10**6, exponential(), 100,
              regime=True),
        _make("U9", "k = 100, uneven bytes", Params(100, 2, 16, 0.5, 0.5, 0.75), 10**6,
              exponential(0.5), 200, missing=tuple(0.5 * zipf(500, 0.5))),
        _make("U10", "low noise, one string of 40 %", Params(64, 2, 16, 0.1, 0.1, 0.9), 20_000,
              np.concatenate([[0.4], exponential(0.6)]), 100),
        _make("U11", "all noise: nobody holds a candidate", EXPONENTIAL, 10**6, np.zeros(0), 500,
              missing=tuple(zipf(2000, 1.1))),
        _make("U12", "rappor-v1, h = 4, repeats", Params(96, 4, 12, 0.4, 0.3, 0.65), 300_000,
              exponential(0.8), 300, missing=(0.15, 0.05), repeats=5, dialect="rappor-v1"),
        _make("U13", "seven days, values that change", WINDOWS, 7 * 85_000,
              0.88 * 0.87 ** np.arange(30) / (0.87 ** np.arange(30)).sum(), 170,
              missing=tuple(np.full(3000, 0.12 / 3000)), repeats=7, change=0.05,
              dialect="rappor-v1"),
    ]  # fmt: skip


def _regimes() -> list[Scenario]:
    """Where error rates or intervals once did not hold."""
    usual = {"dialect": "rappor-v1", "regime": True}
    low, lower = Params(128, 2, 16, 0.0, 0.01, 0.99), Params(128, 2, 16, 0.0, 0.001, 0.999)
    few = exponential()[:20] / exponential()[:20].sum()
    return [
        _make("V1", "low noise, p = .01", low, 10**5, exponential(), 100, **usual),
        _make("V2", "lower noise, p = .001", lower, 10**5, exponential(), 100, **usual),
        _make("V3", "80 equal strings near the threshold", EXPONENTIAL, 10**6,
              np.full(80, 1 / 80), 100, **usual),
        _make("V4", "100 equal strings below it", EXPONENTIAL, 10**6,
              np.full(100, 1 / 100), 100, **usual),
        _make("V5", "low noise, a thousand reports", low, 10**3, exponential(), 100, **usual),
        _make("V6", "128 bits: k = 8, 16 cohorts", Params(8, 1, 16, 0.5, 0.5, 0.75), 10**6,
              few[:8] / few[:8].sum(), 8, **usual),
        _make("V7", "64 bits: k = 16, 4 cohorts", Params(16, 1, 4, 0.25, 0.25, 0.75), 10**5,
              few[:10] / few[:10].sum(), 10, **usual),
        _make("V8", "128 bits: k = 32, 4 cohorts", Params(32, 2, 4, 0.25, 0.25, 0.75), 10**5,
              few, 20, **usual),
        _make("V9", "each client reports 30 times", EXPONENTIAL, 30 * 10**5, exponential(), 100,
              repeats=30, **usual),
    ]  # fmt: skip


UNSEEN = tuple(each.name for each in (*_unseen(), *_regimes()))
SCENARIOS: dict[str, Scenario] = {each.name: each for each in (*_all(), *_unseen(), *_regimes())}
SLOW = {"S5": 10}  # the largest number of seeds
