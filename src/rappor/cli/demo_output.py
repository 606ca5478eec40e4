"""What `rappor demo` prints: introduction, progress, tables, the link to the dashboard, JSON."""

from __future__ import annotations

import math
import shutil
import sys
import textwrap
import time
from collections.abc import Iterable, Mapping
from datetime import date
from types import TracebackType
from typing import Any

from rappor.charts.distribution import median_in_words
from rappor.charts.numbers import (
    NO_BREAK,
    show_epsilon,
    show_finding,
    show_odds,
    show_part,
    show_percent,
    show_share,
)
from rappor.cli.output import bar, paint, say, showable, table
from rappor.collection import Collection
from rappor.decoding.association_table import sentences
from rappor.decoding.exports import without_nan
from rappor.demo.definitions import HOMEPAGE, INSTALL
from rappor.demo.folder import DemoFolder
from rappor.demo.population import DAYS, HIJACKER, DemoPopulation
from rappor.demo.results import DemoResults, EstimateAndTruth
from rappor.demo.run import DemoOutcome

_MISSED_SHOWN = 3
_BAR = 16
_WIDTH = 100
_PROGRESS_BAR, _EVERY_SECONDS = 20, 0.1
_BOLD, _DIM, _HOT, _GOOD = "1", "2", "1;33", "1;32"
_VERDICTS = {"found": "found", "missed": "missed", "false": "FALSE", "absent": "not there"}


def introduce(population: DemoPopulation, homepage: Collection) -> None:
    """Say what will happen, and what privacy people have."""
    once, ever = homepage.epsilon_one, homepage.epsilon_infinity
    say(
        f"{population.people:,} simulated browsers in two countries report their homepage for "
        f"{DAYS} days."
    )
    say("Some of them get hijacked. Can we detect that without seeing anyone's homepage?")
    say()
    say(
        paint(
            f"Privacy: ε {show_epsilon(once)} for one report, ε {show_epsilon(ever)} for all "
            "reports on one homepage.",
            _BOLD,
        )
    )
    say(
        f"One report changes the odds between two homepages by a factor of {show_odds(once)} "
        "at most."
    )
    say()


class DemoProgress:
    """One line on standard error, with a bar while reports are sent; only on a terminal."""

    def __init__(self) -> None:
        """Draw nothing before the first call."""
        self._on = sys.stderr is not None and sys.stderr.isatty()
        self._next = 0.0
        self._began: dict[str, float] = {}

    def __call__(self, what: str, done: int, of: int) -> None:
        """Replace the line: a step, and how many of its reports are done."""
        now = time.monotonic()
        if not self._on or (now < self._next and what in self._began):
            return
        began = self._began.setdefault(what, now)
        self._next = now + _EVERY_SECONDS
        text = f"  {what}"
        if of:
            share = min(done / of, 1.0)
            drawn = bar(share, _PROGRESS_BAR).ljust(_PROGRESS_BAR, "·")
            text += f"  {drawn} {share:4.0%}  {done:,} of {of:,} reports"
            if 0 < share < 1 and now - began > 1:
                text += f"  {(now - began) * (1 - share) / share:.0f} s left"
        width = shutil.get_terminal_size().columns - 1
        sys.stderr.write(showable(f"\r\x1b[K{text[:width]}", sys.stderr))
        sys.stderr.flush()

    def close(self) -> None:
        """Erase the line."""
        if self._on and self._began:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._began.clear()

    def __enter__(self) -> DemoProgress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def lines(outcome: DemoOutcome) -> list[str]:
    """The results as text."""
    found = outcome.results
    days = [result._replace(label=_day(result.label)) for result in found.by_day]
    return [
        *_what_was_sent(outcome),
        "",
        *_table("homepage", _shown(found)),
        *_not_shown(found),
        "",
        *_summary(found),
        "",
        *_all_days(found),
        "",
        f"The hijacker by day, and by country on {_day(found.period)}:",
        "",
        *_table("", days),
        "",
        *_table("", found.by_country),
        "",
        *_association(found),
        "",
        "Two more collections from the same browsers, on their latest day with enough reports:",
        "",
        *_too_few(found.too_few_themes),
        *_table("theme", found.themes, verdicts=False),
        "",
        *_too_few(found.too_few_starts),
        *_table("start time, ms", found.start_ranges, verdicts=False),
        *_median(found),
    ]


def _association(found: DemoResults) -> list[str]:
    """Which channel the hijacker comes with: independence, and the shares given the hijacker."""
    joint = found.association
    asked = textwrap.wrap(
        "Which channel does the hijacker come with? Each browser sent one report on homepage and "
        f"channel together (ε {show_epsilon(joint.epsilon_one)}). From {joint.reports:,} of them: "
        f"{sentences(joint)[0]}",
        _WIDTH,
    )
    if not joint.is_associated or math.isnan(found.channels[0].share):
        return asked
    cells = [("the hijacker by channel", "estimate", "95 % interval", "truth")]
    for each in found.channels:
        value, interval = show_share(each.share, each.low_95, each.high_95)
        cells.append((each.channel, _plain(value), _plain(interval), _percent(each.truth)))
    head, *rows = table(cells)
    width = max(map(len, (head, *rows)))
    drawn = [
        f"  {row.ljust(width)}  {bar(max(each.share, 0.0), _BAR)}".rstrip()
        for row, each in zip(rows, found.channels, strict=True)
    ]
    top = max(found.channels, key=lambda each: each.share)
    share = _plain(str(show_share(top.share, top.low_95, top.high_95)))
    said = f"{share} of the hijacked browsers came with {top.channel}; truth {_percent(top.truth)}."
    return [*asked, "", paint(f"  {head}", _DIM), *drawn, "", paint(said, _GOOD)]


def _too_few(sentence: str | None) -> list[str]:
    return [] if sentence is None else [sentence, ""]


def _what_was_sent(outcome: DemoOutcome) -> list[str]:
    homepages, seconds = outcome.results.homepages, outcome.seconds[0]
    devices = f"{outcome.devices} of the browsers ran rappor.Client."
    if not outcome.devices:
        devices = "None ran rappor.Client: DO_NOT_TRACK is set."
    return [
        f"{outcome.truth.reports:,} reports were encoded, sent and stored in {seconds:.1f} s. "
        f"{devices}",
        f"The server only counts bits. {_day(outcome.results.period)} is the latest day"
        f"{' with enough reports' if outcome.results.view.enough else ''}. From the counts",
        f"of its {homepages.reports:,} homepage reports, rappor estimates the shares of "
        f"{homepages.candidates} candidates. The server",
        "never saw the truth shown next to them:",
    ]


def _shown(found: DemoResults) -> list[EstimateAndTruth]:
    """The detected rows, then the largest missed ones."""
    return [result for result in found.rows if result.row.detected] + _missed(found)[:_MISSED_SHOWN]


def _missed(found: DemoResults) -> list[EstimateAndTruth]:
    missed = (result for result in found.rows if result.verdict == "missed")
    return sorted(missed, key=lambda result: -result.truth)


def _not_shown(found: DemoResults) -> list[str]:
    rest = _missed(found)[_MISSED_SHOWN:]
    notes = []
    if rest:
        notes.append(f"  … and {len(rest)} more missed, each {_percent(rest[0].truth)} or less")
    mass = found.homepages.undetected_mass
    share = show_part(mass.proportion, mass.prop_low_95, mass.prop_high_95)
    held = sum(result.truth for result in found.rows if result.row.detected)
    notes.append(
        f"  undetected mass, not on the list or too rare: {_plain(str(share))}; "
        f"truth {_percent(1 - held)}"
    )
    return notes


def _table(first: str, rows: Iterable[EstimateAndTruth], *, verdicts: bool = True) -> list[str]:
    """A table of estimates next to the truth, with bars."""
    rows = list(rows)
    cells = [(first, "estimate", "95 % interval", "truth", *([""] if verdicts else []))]
    for result in rows:
        row = result.row
        value, interval = show_finding(
            row.proportion, row.prop_low_95, row.prop_high_95, row.detected
        )
        texts = (result.label, _plain(value), _plain(interval), _percent(result.truth))
        cells.append((*texts, _VERDICTS[result.verdict]) if verdicts else texts)
    top = max((result.row.proportion for result in rows), default=0.0)
    drawn = table(cells)
    width = max(map(len, drawn))
    printed = [paint(f"  {drawn[0]}", _DIM)]
    for result, line in zip(rows, drawn[1:], strict=True):
        sized = result.row.detected and not result.row.presence_only
        share = result.row.proportion / top if sized and top > 0 else 0.0
        tail = "  ◄ the hijacker" if result.label == HIJACKER else ""
        text = f"  {line.ljust(width)}  {bar(share, _BAR)}{tail}".rstrip()
        printed.append(paint(text, _colour(result)) if _colour(result) else text)
    return printed


def _colour(row: EstimateAndTruth) -> str:
    if row.label == HIJACKER:
        return _HOT
    return {"missed": _DIM, "false": "31"}.get(row.verdict, "")


def _summary(found: DemoResults) -> list[str]:
    judged, hijacker = found.judged, found.hijacker
    row = hijacker.row
    found_share = show_finding(row.proportion, row.prop_low_95, row.prop_high_95, row.detected)
    share = _plain(str(found_share))
    text = f"{judged.detected} detected, {judged.false_positives} false, {judged.missed} missed. "
    if row.detected:
        text += f"The hijacker is detected: {share}; truth {_percent(hijacker.truth)}."
        return [paint(text, _GOOD), *_rate(found)]
    return [
        text + "The hijacker is not detected: its share is too small.",
        "  (rappor demo --reports 1e6 sends enough reports)",
    ]


def _all_days(found: DemoResults) -> list[str]:
    """What a sum over all days finds: more strings, and the hijacker's mean share."""
    judged, row = found.whole_judged, found.whole.row(HIJACKER)
    share = show_finding(row.proportion, row.prop_low_95, row.prop_high_95, row.detected)
    return [
        f"All {DAYS} days added up, {found.whole.reports:,} reports, show rarer homepages: "
        f"{judged.detected} detected, {judged.false_positives} false,",
        f"{judged.missed} missed. The hijacker, mean of all days: {_plain(str(share))}.",
    ]


def _rate(found: DemoResults) -> list[str]:
    return [
        f"On average at most {_percent(found.homepages.alpha)} of the detected strings are false; "
        f"{found.judged.covered} of {found.judged.detected} intervals contain the truth."
    ]


def _median(found: DemoResults) -> list[str]:
    return [f"  {sentence}" for sentence in median_in_words(found.starts)]


def _day(period: str) -> str:
    return f"{date.fromisoformat(period):%a %d %b}"


def _percent(share: float) -> str:
    return _plain(show_percent(share))


def _plain(text: str) -> str:
    return text.replace(NO_BREAK, " ")


def invite(links: Mapping[str, str]) -> list[str]:
    """The links to the dashboard, by role."""
    from rappor.dashboard.state.accounts import LINK_LIFE

    minutes = int(LINK_LIFE.total_seconds() // 60)
    analyst, operator = links["analyst"], links["operator"]
    return [
        "",
        paint(f"Dashboard: {analyst}", _BOLD),
        f"For an operator, with the page Ingest: {operator}",
        f"Each link works once, within {minutes} minutes; open the second in a private window.",
        "Press Ctrl-C to end the demo.",
    ]


def _command() -> str:
    """How the reader can call the command: in a clone it is .venv/bin/rappor."""
    if shutil.which("rappor"):
        return "rappor"
    return sys.argv[0] if sys.argv[0].endswith("/rappor") else f"{sys.executable} -m rappor"


def again(where: DemoFolder, first_day: str) -> list[str]:
    """How to go on with a folder that is kept."""
    rappor = _command()
    decode = f"{rappor} decode {HOMEPAGE} --data {where.data}"
    return [
        "",
        f"All files are in {where.folder}. The first table again, that of all days, what changed "
        "since the first day, which channel each homepage comes with, the pages, and a link to log "
        "in while they are served:",
        f"  {decode} --truth {where.truth}",
        f"  {decode} --period all --truth {where.whole_truth}",
        f"  {rappor} compare {HOMEPAGE} --data {where.data} --by country --with {first_day}",
        f"  {rappor} associate {INSTALL} --data {where.data}",
        f"  {rappor} serve --data {where.data} --collections {where.collections} --simulated",
        f"  {rappor} access link you --role analyst --data {where.data}",
    ]


def document(outcome: DemoOutcome) -> dict[str, Any]:
    """The results as JSON."""
    found = outcome.results
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
        "period": found.period,
        "params": homepage.params.to_dict(),
        "epsilon_one": homepage.epsilon_one,
        "epsilon_infinity": homepage.epsilon_infinity,
        "candidates": found.homepages.candidates,
        "intervals_that_hold_the_truth": found.judged.covered,
        "all_periods": {
            "reports": found.whole.reports,
            "detected": found.whole_judged.detected,
            "false": found.whole_judged.false_positives,
            "missed": found.whole_judged.missed,
            "intervals_that_hold_the_truth": found.whole_judged.covered,
        },
        "rows": [{"string": result.label} | _facts(result) for result in found.rows],
        "by_day": [{"period": result.label} | _facts(result) for result in found.by_day],
        "by_country": [{"country": result.label} | _facts(result) for result in found.by_country],
        "theme": [{"category": result.label} | _facts(result) for result in found.themes],
        "start_time": [{"range": result.label} | _facts(result) for result in found.start_ranges],
        "association": {
            "reports": found.association.reports,
            "associated": found.association.is_associated,
            "p_value": found.association.independence.p_value,
            "hijacker_channels": [without_nan(each._asdict()) for each in found.channels],
        },
        "seconds": dict(zip(("sending", "decoding"), outcome.seconds, strict=True)),
    }


def _facts(result: EstimateAndTruth) -> dict[str, Any]:
    """An estimate and the truth, as shares of the reports."""
    row = result.row
    return {
        "estimate": row.proportion,
        "low_95": None if row.presence_only else row.prop_low_95,
        "high_95": row.prop_high_95,
        "truth": result.truth,
        "detected": row.detected,
        "verdict": result.verdict,
    }
