"""A long decode from the page: it shows progress, leaves pages usable, and is about as fast."""

import json
import re
import time

import pytest

from rappor.collection import Collection
from rappor.dashboard.access.roles import Role
from rappor.params import Params
from support.command import rappor
from support.dashboard import Sample, serving, week


def long_decode(folder, candidates, reports):
    """Seconds that the command and the page take, what was seen, and how long pages took."""
    params = Params(k=128, h=2, m=64, f=0.5, p=0.5, q=0.75)
    sample = Sample(folder)
    collection = Collection("long", 1, params, period="week", owner="me")
    sample.define(collection)
    weights = {f"site{number}.example": 0.95**number for number in range(60)}
    sample.add(collection, week(0), weights, reports, seed=11)
    sample.store()
    names = [*weights, *(f"absent{number}.example" for number in range(candidates - 60))]
    sample.candidates("long", names)
    listed = str(sample.definitions / "long.candidates.txt")
    began = time.monotonic()
    command = ("decode", "long", "--data", str(sample.data), "--candidates", listed, "--json")
    rappor(*command)
    by_command = time.monotonic() - began
    told = json.loads(rappor(*command, "--all").stdout)
    with serving(sample) as dashboard:
        visit = dashboard.browser(Role.ANALYST)
        visit.get("/")
        began = time.monotonic()
        page = visit.get("/collections/long").text
        job = re.search(r'data-job="([^"]+)"', page)[1]
        seen, slowest = set(), 0.0
        while True:
            now = json.loads(visit.get(f"/jobs/{job}.json").text)
            seen.add((now["state"], now["share"]))
            if now["state"] not in ("waiting", "running"):
                break
            visit.get("/")
            slowest = max(slowest, visit.seconds)
            time.sleep(0.02)
        by_page = time.monotonic() - began
        assert now["state"] == "done", now
        visit.get("/collections/long")
        visit.get("/collections/long")
        kept = visit.seconds
        found = json.loads(visit.get("/collections/long.json").text)
        assert found["rows"] == told["rows"]
        assert found["candidates"] == candidates
    return by_command, by_page, seen, slowest, kept


def check(folder, candidates, reports):
    by_command, by_page, seen, slowest, kept = long_decode(folder, candidates, reports)
    print(f"command {by_command:.2f} s, page {by_page:.2f} s, slowest {slowest:.2f} s")
    assert by_page < 2 * by_command + 1
    shares = sorted(share for _, share in seen if share is not None)
    assert len(shares) >= 2
    assert 0 <= shares[0] < shares[-1] <= 1
    assert slowest < 2
    return kept


def test_a_decode_from_the_page_shows_progress_and_gives_the_commands_numbers(tmp_path):
    check(tmp_path, 20_000, 1_000_000)


@pytest.mark.soak
def test_a_hundred_thousand_candidates_take_at_most_twice_the_commands_time(tmp_path):
    assert check(tmp_path, 100_000, 1_000_000) < 0.4
