"""Definitions as large as lint lets pass, hostile valid batches, and a real limit on memory.

A report of 512 bytes rewrites a row of 32 KB: what a collector holds and writes must be bounded by
that, not by what was sent.
"""

import gzip
import os
import random
import sys
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from rappor import Params
from rappor.collection import Collection, lint
from rappor.wire import MAX_REPORTS, Batch, encode_batch
from support.collecting import PARAMS as SMALL
from support.collecting import (
    Client,
    Process,
    batch,
    client_of,
    collect_command,
    day,
    gateway,
    running,
    stored,
    write_collections,
)

MIB = 2**20
SENDERS = 24
LARGE = Params(k=4096, h=2, m=1023, f=0.5, p=0.5, q=0.75)  # with two cells: 64 MiB less a little
# By the guide (docs/operate.md, limits), without the 256 MiB that 1,024 connections may hold.
DOCUMENTED = (512 - 256) * MIB
ADDRESSES = 1024 * MIB  # of the process: what is mapped, used or not
# What execs into the collector, under a limit of its own.
LIMITED = "import os,resource,sys; n=int(sys.argv[1]); resource.setrlimit(resource.RLIMIT_AS,(n,n))"


def limited(command: list[str | Path]) -> list[str | Path]:
    start = f"{LIMITED}; os.execv(sys.argv[2], sys.argv[2:])"
    return [sys.executable, "-c", start, str(ADDRESSES), *command]


def large(number: int) -> Collection:
    return Collection(f"large{number}", 1, LARGE, dimensions={"os": ("mac",)})


def hostile(dice: random.Random, definitions: int, reports: int) -> Batch:
    """A valid batch, with each report in a cohort of its own."""
    cohorts = dice.sample(range(LARGE.m), reports)
    return Batch(
        os.urandom(16),
        f"large{dice.randrange(definitions)}",
        1,
        day(-dice.randrange(13)),
        (("os", dice.choice(("mac", "other"))),),
        LARGE.k,
        b"".join(cohort.to_bytes(2, "little") for cohort in cohorts),
        bytes(reports * LARGE.k // 8),
    )


def message_of(batch: Batch) -> bytes:
    """The batch in the binary form, which may be larger than 256 KiB before it is compressed."""
    one = encode_batch(replace(batch, cohorts=batch.cohorts[:2], reports=bytes(LARGE.k // 8)))
    head = bytearray(one[: -2 - LARGE.k // 8])
    head[24:28] = batch.count.to_bytes(4, "little")
    return bytes(head) + batch.cohorts + batch.reports


def flood(process: Process, key: str, definitions: int, requests: int) -> Counter[str | int]:
    """Send from many connections at once; what was said.

    Two of three are a gateway that passes on what it is given: each of its bodies of 3 kB makes a
    collector write 33 MB.
    """
    said: Counter[str | int] = Counter()
    lock = threading.Lock()

    def send(seed: int) -> None:
        dice, client = random.Random(seed), Client(process.port)
        for _ in range(requests // SENDERS):
            sent = hostile(dice, definitions, MAX_REPORTS if seed % 3 == 0 else LARGE.m)
            packed = gzip.compress(message_of(sent))
            named = {"authorization": f"Bearer {key}", "content-encoding": "gzip"}
            answer = client.send(packed, **named)
            with lock:
                said[answer.code or answer.status] += 1
        client.close()

    threads = [threading.Thread(target=send, args=(seed,)) for seed in range(SENDERS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return said


def test_the_definitions_are_as_large_as_lint_lets_pass() -> None:
    assert [each.severity for each in lint(large(0)) if each.code == "large-counts"] == ["warning"]
    over = Collection("over", 1, Params(4096, 2, 1024, 0.5, 0.5, 0.75), dimensions={"os": ("mac",)})
    assert [each.severity for each in lint(over) if each.code == "large-counts"] == ["error"]


@pytest.mark.parametrize(
    ("definitions", "requests"),
    [
        (3, 48),
        pytest.param(20, 480, marks=pytest.mark.long),
        pytest.param(20, 20_000, marks=pytest.mark.soak),
    ],
)
def test_hostile_batches_of_large_cells_take_neither_the_memory_nor_the_time_of_others(
    tmp_path: Path, definitions: int, requests: int
) -> None:
    key, options = gateway(tmp_path)
    honest = Collection("homepage", 1, SMALL)
    write_collections(tmp_path, honest, *(large(number) for number in range(definitions)))
    command = limited(collect_command(tmp_path, *options))
    with running(command) as process, client_of(process) as client:
        said: Counter[str | int] = Counter()
        sender = threading.Thread(
            target=lambda: said.update(flood(process, key, definitions, requests))
        )
        sender.start()
        answers: Counter[str | int] = Counter()
        while sender.is_alive():
            answer = client.send(batch())
            answers[answer.code or answer.status] += 1
            assert answer.status == 204 or int(answer.headers["retry-after"]) >= 1
        sender.join()
        assert set(answers) <= {204, "overloaded"}
        assert set(said) <= {204, "overloaded"}
        assert said[204]
        assert process.peak_memory() < DOCUMENTED
        while client.send(batch()).status != 204:  # it recovers
            pass
        assert process.end() == 0
    assert sum(stored(tmp_path).values()) == answers[204] + 1
