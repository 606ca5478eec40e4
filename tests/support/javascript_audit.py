"""The JavaScript encoder behind the interface of `rappor.Encoder`, for the audits; and its bugs.

Every request makes the real JavaScript encode: the adapter only passes values and reports on. It
draws no randomness, so `entropy` is ignored: reports come from the platform's generator of Node.js,
and audits of them use UNSEEDED_ALPHA (support/audit.py).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rappor.mechanism import Ranges, Report, Trace, Views
from rappor.params import Params
from support.epsilon_audit import Case
from support.javascript import PACKAGE, Node
from support.tuple_cases import shape_of

AUDIT = PACKAGE / "tests" / "audit.js"


class JavaScriptEncoder:
    """One encoder of the Node.js process."""

    def __init__(self, node: Node, params: Params, **shape: Any) -> None:
        """Make it."""
        self._node = node
        ended = [_ended.pop() for _ in range(len(_ended))]
        secret = {"secret": shape["secret"].hex()}
        made = node.ask({"make": _options(params, shape) | secret, "ended": ended})
        self._id, self.cohort = str(made["id"]), int(made["cohort"])

    def encode(self, value: object) -> Report:
        """One report."""
        (made,) = self._node.ask({"id": self._id, "value": value, "times": 1})
        return Report(made["cohort"], _bits(made["bits"]))

    def trace(self, value: object) -> Trace:
        """B, B' and a report."""
        found = self._node.ask({"id": self._id, "trace": value})
        return Trace(_bits(found["signal"]), _bits(found["permanent"]), self.encode(value))

    def __del__(self) -> None:
        """Let the process forget it, with the next request."""
        _ended.append(self._id)


def _options(params: Params, shape: dict[str, Any]) -> dict[str, Any]:
    """The options of `createEncoder` for the arguments of `rappor.Encoder`, but the secret."""
    wanted = ("collection", "kind", "categories", "cohort")
    given = {name: shape[name] for name in wanted if shape.get(name) is not None}
    if isinstance(shape.get("ranges"), Ranges):
        given["edges"] = [str(edge) for edge in shape["ranges"].edges]
    if shape.get("fields"):
        given |= shape_of(Views(shape["fields"], shape["views"]), params.m)
    return given | {"params": params.to_dict()}


_ended: list[str] = []  # encoders of any process; their names are unique


def _bits(packed: str) -> int:
    return int.from_bytes(bytes.fromhex(packed), "little")


class Auditor:
    """Makes encoders of one process."""

    def __init__(self, node: Node) -> None:
        """Take the process."""
        self.node = node

    def make(self, params: Params, **shape: Any) -> JavaScriptEncoder:
        """An encoder, with the arguments of `rappor.Encoder`."""
        return JavaScriptEncoder(self.node, params, **shape)

    def reports(
        self, params: Params, value: object, clients: int, times: int, **shape: Any
    ) -> bytes:
        """Packed reports of fresh clients in cohort 0, `times` of each."""
        bulk = _options(params, {"collection": "bulk", "cohort": 0} | shape)
        packed = []
        for start in range(0, clients, 500):
            secrets = [os.urandom(32).hex() for _ in range(min(500, clients - start))]
            request = {"bulk": bulk, "secrets": secrets, "value": value, "times": times}
            packed.append(bytes.fromhex(self.node.ask(request)))
        return b"".join(packed)

    def draw(self, case: Case, value: object, clients: int, times: int) -> np.ndarray:
        """Bits (clients, times, k) of fresh clients, many in one request."""
        k = case.params.k
        packed = self.reports(case.params, value, clients, times, kind=case.kind, **case.shape)
        rows = np.frombuffer(packed, np.uint8).reshape(clients, times, (k + 7) // 8)
        return np.unpackbits(rows, axis=2, bitorder="little", count=k)


@contextmanager
def auditing(sources: Path | None = None) -> Iterator[Auditor]:
    """An auditor of the package, or of other sources."""
    node = Node(AUDIT, *([] if sources is None else [str(sources)]))
    try:
        yield Auditor(node)
    finally:
        node.close()


class PlantedBug(NamedTuple):
    """One change of the sources, and the check of support/audit.py that finds it.

    With that many clients the check is at least 5 standard errors beyond the limit of 6.2.
    """

    file: str
    old: str
    new: str
    check: str
    clients: int = 400


_PERMANENT = "return signal.map((byte, at) => byte ^ flips[at]);"
_FRESH = "return belowP.map((byte, at) => byte | (permanent[at] & ones[at]));"
BUGS = {
    "no_memo": PlantedBug(
        "encoder.js",
        "const stream = keyedStream(key);",
        "const stream = keyedStream(randomBytes(64));",
        "B' survives a restart",
        60,
    ),
    "memo_drawn_for_every_report": PlantedBug(
        "encoder.js",
        "below([half], k, stream(memo))",
        "below([half], k, randomBytes)",
        "B' survives a restart",
        60,
    ),
    "math_random": PlantedBug(
        "entropy.js",
        "crypto.getRandomValues(data);",
        "data.set(data.map(() => Math.random() * 256));",
        "x1: zeros report p*",
    ),
    "random_below_p": PlantedBug(
        "encoder.js",
        "const [belowP, belowQ] = below([low, high], k, entropy);",
        "const [belowP, belowQ] = [p, q].map((limit) => Uint8Array.from(everything, (_, at) => "
        "Array.from({ length: 8 }, (_, bit) => +(Math.random() < limit) << bit)"
        ".reduce((one, other) => one | other) & everything[at]));",
        "x1: zeros report p*",
    ),
    "bit_0_not_randomised": PlantedBug(
        "encoder.js", "const response = permanent(bits, memo);\n",
        "const response = permanent(bits, memo); "
        "const report = (drawn) => { const made = { cohort, bits: instantaneous(drawn) }; "
        "made.bits[0] = (made.bits[0] & 254) | (bits[0] & 1); return made; };\n",
        "bit 0",
    ),
    "last_bit_not_randomised": PlantedBug(
        "coins.js",
        "return lanes.map(({ found }) => found);",
        "for (const { found } of lanes) found[size - 1] &= 127; "
        "return lanes.map(({ found }) => found);",
        "bit 127",
    ),
    "cohort_drawn_again": PlantedBug(
        "memo.js",
        "return Number(word % count);",
        "return crypto.getRandomValues(new Uint8Array(1))[0] % m;",
        "the cohort is permanent",
        60,
    ),
    "p_and_q_swapped": PlantedBug(
        "encoder.js",
        "const ones = q === 1 ? everything : belowQ;",
        "const ones = belowP; belowP.set(belowQ.map((byte, at) => byte & ~permanent[at]));",
        "x1: ones report q*",
    ),
    "f_instead_of_half_of_it": PlantedBug(
        "encoder.js", "[false, ...binaryDigits(f)]", "binaryDigits(f)", "B': zeros flipped with f/2"
    ),
    "one_sided_noise": PlantedBug(
        "encoder.js",
        _PERMANENT,
        "return signal.map((byte, at) => byte | flips[at]);",
        "B': ones kept with 1 - f/2",
        2000,
    ),
    "no_second_randomization": PlantedBug(
        "encoder.js", _FRESH, "return permanent.slice();", "x1: ones report q*", 4000
    ),
    "no_first_randomization": PlantedBug(
        "encoder.js", _PERMANENT, "return signal.slice();", "B': zeros flipped with f/2"
    ),
    "value_not_in_the_memo": PlantedBug(
        "encoder.js",
        "below([half], k, stream(memo))",
        "below([half], k, stream(new Uint8Array(0)))",
        "x and y: independent",
        4000,
    ),
    "collection_not_in_the_memo": PlantedBug(
        "memo.js",
        "derive(root, purpose, collection, digest",
        'derive(root, purpose, "always the same", digest',
        "collections: independent",
        4000,
    ),
    "f_not_in_the_memo": PlantedBug(
        "memo.js",
        "`${k} ${h} ${m} ${fractionText(f)}`",
        "`${k} ${h} ${m}`",
        "f and f': independent",
        4000,
    ),
    "p_in_the_memo": PlantedBug(
        "memo.js",
        "`${k} ${h} ${m} ${fractionText(f)}`",
        "`${k} ${h} ${m} ${fractionText(f)} ${params.p}`",
        "B' survives a change of p and q",
    ),
    "reports_repeat": PlantedBug(
        "encoder.js",
        "const instantaneous = instantaneousResponse(params, checked(entropy));",
        "const instantaneous = instantaneousResponse(params, keyedStream(root)(digest));",
        "x1 and x3: zeros, both 1",
    ),
    "bytes_share_their_coins": PlantedBug(
        "coins.js",
        "const hit = open[byte] & words[at + byte];",
        "const hit = open[byte] & words[at + (byte & ~1)];",
        "bits 8 apart: independent",
    ),
}  # fmt: skip
