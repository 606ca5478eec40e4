"""The JavaScript of docs/protocol.md, run by Node.js, places values where the package does."""

from __future__ import annotations

import json
import random
import re
import subprocess
from pathlib import Path

import pytest

import rappor
from support.javascript import node

PROTOCOL = Path(__file__).parents[2] / "docs" / "protocol.md"

# Reads cases as JSON from standard input, writes the positions of each, or "refused".
DRIVER = """
const { createHash } = require("node:crypto");
const blake2s = (bytes) => new Uint8Array(createHash("blake2s256").update(bytes).digest());
const cases = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
const results = cases.map(({ text, hex, cohort, k, h }) => {
  const value = hex === undefined ? text : Uint8Array.from(Buffer.from(hex, "hex"));
  try {
    return rapporV1Positions(value, cohort, k, h, blake2s);
  } catch (error) {
    return error instanceof RangeError ? "refused" : String(error);
  }
});
process.stdout.write(JSON.stringify(results));
"""

WIDTHS = (2, 3, 7, 128, 1000, 4096)
STRINGS = (
    "",
    "a",
    "example.com",
    "nul\0inside",
    "\ufeffbyte order mark",
    "é",
    "e\u0301",
    "日本語",
    "עברית",
    "👩‍👩‍👧",
    "\U0010ffff",
    "x" * 1000,
)


def javascript() -> str:
    """The one js block of the page."""
    blocks = re.findall(
        r"^```js\n(.*?)^```$", PROTOCOL.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    assert len(blocks) == 1
    return str(blocks[0])


def run_node(cases: list[dict[str, object]], script: str) -> list[object]:
    done = subprocess.run(
        [node(), "-e", script + DRIVER],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=True,
    )
    results = json.loads(done.stdout)
    assert isinstance(results, list)
    return results


def make_cases() -> list[dict[str, object]]:
    """Every width with every h it allows, in low, high and random cohorts; text and bytes."""
    choose = random.Random("rappor-v1 in JavaScript")
    cases: list[dict[str, object]] = []
    for k in WIDTHS:
        for h in range(1, min(16, k - 1) + 1):
            for text in STRINGS:
                for cohort in (0, 1023, choose.randrange(1024)):
                    cases.append({"text": text, "cohort": cohort, "k": k, "h": h})
            for size in (0, 1, 15, 48, 49, 200):
                data = choose.randbytes(size)
                cohort = choose.randrange(1024)
                cases.append({"hex": data.hex(), "cohort": cohort, "k": k, "h": h})
    return cases


def placed_here(case: dict[str, object]) -> list[int]:
    k, h, cohort = (int(str(case[name])) for name in ("k", "h", "cohort"))
    params = rappor.Params(k=k, h=h, m=1024, f=0.5, p=0.5, q=0.75)
    value = str(case["text"]) if "text" in case else bytes.fromhex(str(case["hex"]))
    return list(rappor.bloom_positions(value, cohort, params))


def test_the_javascript_of_the_protocol_places_as_the_package_does() -> None:
    cases = make_cases()
    assert len(cases) > 2000
    assert run_node(cases, javascript()) == [placed_here(case) for case in cases]


def test_the_comparison_notices_a_position_that_is_not_skipped_in_order() -> None:
    wrong = javascript().replace("[...chosen].sort((x, y) => x - y)", "chosen")
    assert wrong != javascript()
    cases = make_cases()
    assert run_node(cases, wrong) != [placed_here(case) for case in cases]


def test_half_a_surrogate_pair_is_refused_on_both_sides() -> None:
    cases: list[dict[str, object]] = [{"text": "\ud83c", "cohort": 0, "k": 128, "h": 2}]
    assert run_node(cases, javascript()) == ["refused"]
    with pytest.raises(rappor.EncodeError, match="surrogate"):
        placed_here(cases[0])
