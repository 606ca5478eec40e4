"""What `rappor demo` prints: its promise, its tables, its invitation, its JSON."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Any

from rappor.charts.numbers import (
    NO_BREAK,
    show_count,
    show_epsilon,
    show_odds,
    show_percent,
    show_share,
)
from rappor.cli.output import bar, paint, say, table
from rappor.collection import Collection
from rappor.demo.definitions import CANDIDATES, HOMEPAGE
from rappor.demo.folder import DemoFolder
from rappor.demo.population import DAYS, HIJACKER, DemoPopulation
from rappor.demo.results import Beside, DemoResults
from rappor.demo.run import DemoOutcome

_MISSED_SHOWN = 3
_BAR = 16
_BOLD, _DIM, _HOT, _GOOD = "1", "2", "1;33", "1;32"
_VERDICTS = {"found": "found", "missed": "missed", "false": "FALSE", "absent": "not there"}


def introduce(population: DemoPopulation, homepage: Collection) -> None:
    """What will happen, and the promise."""
    once, ever = homepage.epsilon_one, homepage.epsilon_infinity
    say(
        f"{population.people:,} simulated browsers in two countries report their homepage, "
        f"{DAYS} days long."
    )
    say("Some of them get hijacked on the way. Can that be seen without seeing anyone's homepage?")
    say()
    say(
        paint(
            f"Promise: ε {show_epsilon(once)} for one report, ε {show_epsilon(ever)} for all "
            "reports on one homepage, ever.",
            _BOLD,
        )
    )
    say(
        f"That is: one report moves the odds between two homepages by a factor of "
        f"{show_odds(once)} at most."
    )
    say()


def lines(outcome: DemoOutcome) -> list[str]:
    """The results for a person."""
    found = outcome.found
    days = [each._replace(label=_day(each.label)) for each in found.by_day]
    return [
        *_what_was_sent(outcome),
        "",
        *_table("homepage", _shown(found)),
        *_not_shown(found),
        "",
        *_summary(found),
        "",
        "The hijacker by day, and by country:",
        "",
        *_table("", days),
        "",
        *_table("", found.by_country),
        "",
        "Two more collections of the same browsers:",
        "",
        *_table("theme", found.themes, verdicts=False),
        "",
        *_table("start time, ms", found.start_ranges, verdicts=False),
        *_median(found),
    ]


def _what_was_sent(outcome: DemoOutcome) -> list[str]:
    homepages, sent = outcome.found.homepages, outcome.seconds[0]
    devices = f"{outcome.devices} of the browsers ran rappor.Client."
    if not outcome.devices:
        devices = "None ran rappor.Client: DO_NOT_TRACK is set."
    return [
        f"{outcome.truth.reports:,} reports were made, sent and stored in {sent:.1f} s. {devices}",
        "The server added up their bits. What can be learnt from the sums of "
        f"{homepages.reports:,} reports on",
        f"homepages, looking for {homepages.candidates} candidates; and the truth, which the "
        "server never saw:",
    ]


def _shown(found: DemoResults) -> list[Beside]:
    """What was detected, then the largest that were missed."""
    return [each for each in found.rows if each.row.detected] + _missed(found)[:_MISSED_SHOWN]


def _missed(found: DemoResults) -> list[Beside]:
    missed = (each for each in found.rows if each.verdict == "missed")
    return sorted(missed, key=lambda each: -each.truth)


def _not_shown(found: DemoResults) -> list[str]:
    rest = _missed(found)[_MISSED_SHOWN:]
    said = []
    if rest:
        said.append(f"  … and {len(rest)} more missed, {_percent(rest[0].truth)} or less each")
    mass = found.homepages.unlisted
    share = show_share(mass.proportion, mass.prop_low_95, mass.prop_high_95)
    held = sum(each.truth for each in found.rows if each.row.detected)
    said.append(f"  on no list, or too rare: {_plain(str(share))}; truth {_percent(1 - held)}")
    return said


def _table(first: str, rows: Iterable[Beside], *, verdicts: bool = True) -> list[str]:
    """A table of estimates beside the truth, with bars."""
    rows = list(rows)
    cells = [(first, "estimate", "95 % interval", "truth", *([""] if verdicts else []))]
    for each in rows:
        row = each.row
        value, interval = show_share(row.proportion, row.prop_low_95, row.prop_high_95)
        made = (each.label, _plain(value), interval, _percent(each.truth))
        cells.append((*made, _VERDICTS[each.verdict]) if verdicts else made)
    top = max((each.row.proportion for each in rows), default=0.0)
    drawn = table(cells)
    width = max(map(len, drawn))
    said = [paint(f"  {drawn[0]}", _DIM)]
    for each, line in zip(rows, drawn[1:], strict=True):
        share = each.row.proportion / top if top > 0 else 0.0
        tail = "  ◄ the hijacker" if each.label == HIJACKER else ""
        text = f"  {line.ljust(width)}  {bar(share, _BAR)}{tail}".rstrip()
        said.append(paint(text, _colour(each)) if _colour(each) else text)
    return said


def _colour(each: Beside) -> str:
    if each.label == HIJACKER:
        return _HOT
    return {"missed": _DIM, "false": "31"}.get(each.verdict, "")


def _summary(found: DemoResults) -> list[str]:
    judged, hijacker = found.judged, found.hijacker
    row = hijacker.row
    share = _plain(str(show_share(row.proportion, row.prop_low_95, row.prop_high_95)))
    said = f"{judged.detected} detected, {judged.false_positives} false, {judged.missed} missed. "
    if row.detected:
        said += f"The hijacker is found: {share}; truth {_percent(hijacker.truth)}."
        return [paint(said, _GOOD), *_rate(found)]
    return [
        said + "The hijacker is not found: too few reports for its share.",
        "  (rappor demo --reports 1e6 sends enough)",
    ]


def _rate(found: DemoResults) -> list[str]:
    return [
        f"On average at most {_percent(found.homepages.alpha)} of what is detected is false; "
        f"{found.judged.covered} of {found.judged.detected} intervals hold the truth."
    ]


def _median(found: DemoResults) -> list[str]:
    middle = found.starts.quantile(0.5)
    if middle.value is None or middle.low_95 is None or middle.high_95 is None:
        return []
    shown = show_count(middle.value, middle.low_95, middle.high_95)
    return [f"  median: {shown} ms"]


def _day(period: str) -> str:
    return f"{date.fromisoformat(period):%a %d %b}"


def _percent(share: float) -> str:
    return _plain(show_percent(share))


def _plain(text: str) -> str:
    return text.replace(NO_BREAK, " ")


def invite(link: str, minutes: int) -> list[str]:
    """The way to the dashboard."""
    return [
        "",
        paint(f"Dashboard: {link}", _BOLD),
        f"The link logs one browser in, once, within {minutes} minutes. Ctrl-C ends the demo.",
    ]


def again(where: DemoFolder) -> list[str]:
    """How to go on with a folder that stays."""
    listed = where.collections / CANDIDATES
    return [
        f"Everything is in {where.folder}. The first table again, and the server:",
        f"  rappor decode {HOMEPAGE} --data {where.data} --candidates {listed} --truth "
        f"{where.truth}",
        f"  rappor serve --data {where.data} --collections {where.collections}",
    ]


def document(outcome: DemoOutcome) -> dict[str, Any]:
    """The results for a program."""
    found = outcome.found
    homepage = outcome.collections[0]
    return {
        "detected": found.judged.detected,
        "false": found.judged.false_positives,
        "missed": found.judged.missed,
        "hijacker": _facts(found.hijacker) | {"string": HIJACKER},
        "people": outcome.population.people,
        "seed": outcome.population.seed,
        "devices": outcome.devices,
        "reports": outcome.truth.reports,
        "periods": list(outcome.periods),
        "params": homepage.params.to_dict(),
        "epsilon_one": homepage.epsilon_one,
        "epsilon_infinity": homepage.epsilon_infinity,
        "candidates": found.homepages.candidates,
        "intervals_that_hold_the_truth": found.judged.covered,
        "rows": [{"string": each.label} | _facts(each) for each in found.rows],
        "by_day": [{"period": each.label} | _facts(each) for each in found.by_day],
        "by_country": [{"country": each.label} | _facts(each) for each in found.by_country],
        "theme": [{"category": each.label} | _facts(each) for each in found.themes],
        "start_time": [{"range": each.label} | _facts(each) for each in found.start_ranges],
        "seconds": dict(zip(("sending", "decoding"), outcome.seconds, strict=True)),
    }


def _facts(each: Beside) -> dict[str, Any]:
    """An estimate beside the truth, as shares of the reports."""
    row = each.row
    return {
        "estimate": row.proportion,
        "low_95": row.prop_low_95,
        "high_95": row.prop_high_95,
        "truth": each.truth,
        "detected": row.detected,
        "verdict": each.verdict,
    }
