"""`rappor demo --small`: the idea of RAPPOR alone, with the real client code and nothing else."""

from __future__ import annotations

import argparse
import math
import random
import sys
from typing import Any

from rappor.cli.arguments import UsageError
from rappor.cli.explain import describe
from rappor.cli.output import bar, note, percent, say, say_json, table
from rappor.mechanism import Encoder, new_secret
from rappor.mechanism.channel import channel
from rappor.params import Params
from rappor.privacy import epsilon_infinity, epsilon_one
from rappor.privacy.rounding import up

QUESTION = "Which browser do you use?"
TRUE_SHARES = {"Chrome": 0.58, "Safari": 0.21, "Firefox": 0.12, "Edge": 0.07, "Lynx": 0.02}
PARAMS = Params(k=len(TRUE_SHARES), h=1, m=1, f=0.5, p=0.5, q=0.75)
Z_95 = 1.959964
PEOPLE, MOST_PEOPLE = 50_000, 10_000_000


def run(args: argparse.Namespace) -> int:
    """Ask, count, estimate."""
    people = PEOPLE if args.people is None else args.people
    if people > MOST_PEOPLE:
        raise UsageError(f"--people goes up to {MOST_PEOPLE:,}, got {people:,}")
    categories = list(TRUE_SHARES)
    if not args.json:
        _introduce(categories)
    truth, ones = _survey(people, categories)
    rows = []
    for bit, name in enumerate(categories):
        count, std_error = _estimated(ones[bit], people)
        margin = Z_95 * std_error
        rows.append(
            {
                "value": name,
                "estimate": count / people,
                "low": (count - margin) / people,
                "high": (count + margin) / people,
                "truth": truth[bit] / people,
                "reported": ones[bit] / people,
            }
        )
    if args.json:
        say_json({"people": people, "params": PARAMS.to_dict(), "rows": rows})
    else:
        _conclude(people, rows)
    return 0


def _estimated(ones: int, people: int) -> tuple[float, float]:
    """The estimated number of people and its standard error, without numpy (§4)."""
    noisy = channel(PARAMS)
    count = float((ones - noisy.p_star * people) / (noisy.q_star - noisy.p_star))
    held = min(max(count, 0.0), float(people))
    if_zero, if_one = noisy.noise
    return count, math.sqrt(held * if_one + (people - held) * if_zero)


def _introduce(categories: list[str]) -> None:
    say("RAPPOR: each phone blurs its answer before sending it; only the crowd can be seen.")
    say()
    say(f"1. One person. {QUESTION} — Firefox. Their phone tosses coins:")
    say()
    encoder = Encoder(
        PARAMS, secret=new_secret(), collection="browser", kind="category", categories=categories
    )
    for line in describe("Firefox", encoder, encoder.trace("Firefox"), categories):
        say(f"   {line}".rstrip())
    say()


def _survey(people: int, categories: list[str]) -> tuple[list[int], list[int]]:
    """True answers and reported ones per bit; each person has a secret of their own."""
    answers = random.choices(categories, weights=list(TRUE_SHARES.values()), k=people)  # noqa: S311 - people, not noise
    truth = [answers.count(name) for name in categories]
    ones = [0] * len(categories)
    step = max(1, people // 50)
    for number, answer in enumerate(answers, 1):
        encoder = Encoder(
            PARAMS,
            secret=new_secret(),
            collection="browser",
            kind="category",
            categories=categories,
        )
        bits = encoder.encode(answer).bits
        for bit in range(len(ones)):
            ones[bit] += bits >> bit & 1
        if sys.stderr.isatty() and (number % step == 0 or number == people):
            end = "\n" if number == people else ""
            print(f"\r   {number:,} of {people:,} people", end=end, file=sys.stderr, flush=True)
    return truth, ones


def _conclude(people: int, rows: list[dict[str, Any]]) -> None:
    say(f"2. {people:,} people. The server only ever sees blurred answers, and counts them:")
    say()
    shown = [("browser", "1s received", "estimate", "95 % interval", "truth")]
    for row in rows:
        interval = f"{percent(row['low'])} to {percent(row['high'])}"
        shown.append(
            (
                row["value"],
                percent(row["reported"]),
                percent(row["estimate"]),
                interval,
                percent(row["truth"]),
            )
        )
    bars = ["", *(bar(row["estimate"], 24) for row in rows)]
    for line, drawn in zip(table(shown), bars, strict=True):
        say(f"   {line}  {drawn}".rstrip())
    covered = sum(row["low"] <= row["truth"] <= row["high"] for row in rows)
    say()
    say(
        f"   The truth lies in {covered} of {len(rows)} intervals; of many surveys, each interval "
        "is right in 95 %."
    )
    say()
    once, ever = (up(e(PARAMS, "category")) for e in (epsilon_one, epsilon_infinity))
    say(f"3. What anyone learns about one person: at most ε = {once} from a report,")
    say(f"   {ever} from all reports of one answer, for ever.")
    say("   That holds against the server too, for whoever does not have the phone's own secret.")
    say()
    note("Next: rappor explain example.com   rappor privacy --preset windows   rappor --help")
