"""Vectors and random cases for the JavaScript client, with what Python makes of them."""

from __future__ import annotations

import json
import random
import string
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

from rappor import Encoder, Params, Ranges
from rappor.mechanism import Field, Report, View, Views
from rappor.mechanism.memo import derive_memo_key
from rappor.mechanism.prr import permanent_response
from rappor.mechanism.views import FIELD_KINDS
from rappor.wire import Batch, encode_batch, pack
from support.javascript import Request
from support.tuple_cases import shape_of

VECTORS = Path(__file__).parents[1] / "vectors"
TUPLE_COHORTS = 8  # of tuples that must be refused in every cohort
Expected = dict[str, Any]


def vectors(name: str) -> dict[str, Any]:
    """One file of frozen vectors."""
    found = json.loads((VECTORS / f"{name}.json").read_text("utf-8"))
    assert isinstance(found, dict)
    return found


def packed(text: str) -> str:
    """A bit string, bit k-1 first, as packed bytes in hex."""
    return pack(int(text, 2), len(text)).hex()


Case = tuple[Request, object]  # and what the answer has to be: see `agrees`


class Containing(str):
    """Words that the message of a refusal must hold."""


REFUSED = Containing("")


def agrees(answer: object, expected: object) -> bool:
    """Whether an answer of commands.js is the expected one; of an object some fields are given."""
    if isinstance(expected, Containing):
        return isinstance(answer, dict) and expected in answer.get("refused", ())
    if isinstance(expected, dict):
        return isinstance(answer, dict) and expected.items() <= answer.items()
    return answer == expected


def vector_cases() -> list[Case]:
    """Every vector that concerns a client. JSON batches do not: a client sends binary ones."""
    own = vectors("rappor-v1")
    params = {"k": 128, "h": 2, "f": 0.5, "p": 0.5, "q": 0.75}
    shape = {"command": "trace", "secret": own["secret"], "value": "x", "collection": "c"}
    batches, definitions = vectors("batches"), vectors("client-definitions")
    accepted = [*definitions["accepted"], *definitions["other_dialects"]]
    refused = [*definitions["refused"], *definitions["invalid"], *definitions["repeated"]]
    return [
        *zip(*memo_requests(), strict=True),
        *zip(*tuple_requests(), strict=True),
        *zip(*placement_requests(), strict=True),
        *[
            ({"command": "paramsDigest", "params": vector["params"]}, vector["digest"])
            for vector in own["params_digests"]
        ],
        *[
            (
                shape | {"dialect": vector["dialect"], "params": params | {"m": 16}},
                {"memo_digest": vector["digest"]},
            )
            for vector in own["memo_digests"]
        ],
        *[
            (
                shape | {"collection": vector["collection"], "params": params | {"m": vector["m"]}},
                {"cohort": vector["cohort"]},
            )
            for vector in own["cohorts"]
        ],
        *[
            (
                {"command": "cityhash", "data": vector["data_hex"], "seed": vector["seed"]},
                f"{int(vector['hash_hex'], 16):x}",
            )
            for vector in vectors("cityhash")["vectors"]
        ],
        *[
            ({"command": "batch", "binary": vector["binary"]}, {"again": vector["binary"]})
            for vector in batches["good"]
        ],
        *[
            ({"command": "batch", "binary": vector["binary"]}, Containing(vector["error"]))
            for vector in batches["bad_binary"]
        ],
        *[
            ({"command": "definition", "text": vector["text"]}, vector["memo_digest"])
            for vector in accepted
        ],
        *[
            (
                {"command": "definition", "text": vector["text"]},
                {name: vector[name] for name in ("code", "path")},
            )
            for vector in refused
        ],
        *[
            (
                {"command": "definition", "text": vector["text"], "without": True},
                {"code": "unsupported", "path": "dialect"},
            )
            for vector in definitions["other_dialects"]
        ],
    ]


def memo_requests() -> tuple[list[Request], list[Expected]]:
    """The memos of rappor-v1.json: digests, cohorts, filters and permanent responses."""
    frozen = vectors("rappor-v1")
    requests, expected = [], []
    for memo in frozen["memos"]:
        params = {name: memo[name] for name in ("k", "h", "m", "f")} | {"p": 0.25, "q": 0.75}
        names = ("kind", "collection", "period", "categories", "edges")
        shape = {name: memo[name] for name in names if name in memo}
        value = memo["value"]
        requests.append(
            {"command": "trace", "params": params, "secret": frozen["secret"], "value": value}
            | shape
        )
        expected.append(
            {name: memo[name] for name in ("memo_digest", "cohort")}
            | {name: packed(memo[name]) for name in ("signal", "permanent", "null_permanent")}
        )
    return requests, expected


def tuple_requests() -> tuple[list[Request], list[Expected]]:
    """The memos of tuples.json, in every view; and values that must be refused."""
    frozen = vectors("tuples")
    shared = {"command": "trace", "kind": "tuple", "secret": frozen["secret"]}
    requests: list[Request] = []
    expected: list[Expected] = []
    for memo in frozen["memos"]:
        params = {name: memo[name] for name in ("k", "h", "m", "f")} | {"p": 0.25, "q": 0.75}
        names = ("fields", "views", "collection", "period", "cohort")
        shape = {name: memo[name] for name in names}
        requests.append(shared | shape | {"params": params, "value": {"tuple": memo["value"]}})
        expected.append(
            {name: memo[name] for name in ("memo_digest", "cohort")}
            | {name: packed(memo[name]) for name in ("signal", "permanent", "null_permanent")}
        )
    params = {"k": 16, "h": 2, "m": TUPLE_COHORTS, "f": 0.5, "p": 0.25, "q": 0.75}
    for case in frozen["refused"]:
        shape = {name: case[name] for name in ("fields", "views")}
        for cohort in range(TUPLE_COHORTS):
            requests.append(
                shared
                | shape
                | {"params": params, "collection": "c", "cohort": cohort}
                | {"value": {"tuple": case["value"]}}
            )
            expected.append({"code": "value"})
    return requests, expected


def placement_requests() -> tuple[list[Request], list[object]]:
    """Placements of all dialects, and inputs that must be refused."""
    requests: list[Request] = []
    expected: list[object] = []

    def add(vector: dict[str, Any], dialect: str, positions: object) -> None:
        params = {name: vector[name] for name in ("k", "h", "m")} | {"f": 0.5, "p": 0.25, "q": 0.75}
        requests.append(
            {"command": "positions", "params": params, "dialect": dialect}
            | {name: vector[name] for name in ("cohort", "value")}
        )
        expected.append(positions)

    own = vectors("rappor-v1")
    for vector in own["placements"]:
        add(vector, "rappor-v1", vector["positions"])
    for vector in own["bad"]:
        add(vector, "rappor-v1", REFUSED)
    for vector in vectors("dialects")["vectors"]:
        for dialect in ("google-java", "chromium"):
            if dialect in vector:
                add(vector, dialect, vector[dialect])
    google = vectors("google")
    for vector in (*google["u32"], *google["long"]):
        add(vector, "google", vector["bloom_bits"])
    return requests, expected


KINDS = ("string", "category", "boolean", "ordinal", "bits", "tuple")
_HASHED = ("string", "tuple")
_ALPHABETS = (string.printable, "äöüßéñ", "日本語中文한국어", "👩‍👧🏳️‍🌈𝒳", "עבריתالعربية")


def random_text(choose: random.Random) -> str:
    """Some Unicode text, of up to 40 characters."""
    alphabet = choose.choice(_ALPHABETS)
    return "".join(choose.choice(alphabet) for _ in range(choose.randrange(40)))


def _probabilities(choose: random.Random) -> dict[str, float]:
    """f, p and q: short binary fractions, decimals, and any doubles."""
    draw: Callable[[], float] = choose.choice(
        [
            lambda: choose.randrange(17) / 16,
            lambda: choose.randrange(1001) / 1000,
            choose.random,
            lambda: choose.random() * 2.0 ** -choose.randrange(60),
        ]
    )
    while True:
        f, p, q = draw(), draw(), draw()
        if f < 1 and p < q and (f > 0 or (p > 0 and q < 1)):
            return {"f": f, "p": p, "q": q}


def random_params(choose: random.Random, kind: str) -> Params:
    """Some parameters of a kind, with any f, p and q."""
    k = 1 if kind == "boolean" else choose.choice((2, 16, 128))
    h = choose.randint(1, min(16, k - 1)) if kind in _HASHED else 1
    return Params.from_dict({"k": k, "h": h, "m": 1} | _probabilities(choose))


def random_case(choose: random.Random) -> tuple[Request, Expected]:
    """A random case of any kind, and what Python makes of it."""
    kind = choose.choice(KINDS)
    k = {"boolean": 1}.get(kind) or choose.choice((2, 3, 7, 8, 9, 16, 33, 64, 128, 255, 256, 1000))
    if choose.random() < 0.02 and kind in ("string", "bits"):
        k = 4096
    h = choose.randint(1, min(16, k - 1)) if kind in _HASHED else 1
    numbers = {"k": k, "h": h, "m": choose.choice((1, 2, 3, 8, 63, 64, 1000, 1024))}
    params = Params.from_dict(numbers | _probabilities(choose))
    shape: dict[str, Any] = {"kind": kind}
    request: Request = {"command": "trace", "params": params.to_dict(), "kind": kind}
    value: object
    if kind == "string":
        text = choose.random() < 0.7
        value = random_text(choose) if text else choose.randbytes(choose.randrange(200))
        request["value"] = value if isinstance(value, str) else {"hex": value.hex()}
    elif kind == "category":
        count = choose.randint(1, min(k, 12))
        names = {random_text(choose) for _ in range(count)}
        shape["categories"] = request["categories"] = sorted(names)
        value = request["value"] = choose.choice(shape["categories"])
    elif kind == "boolean":
        value = request["value"] = choose.random() < 0.5
    elif kind == "ordinal":
        edges = sorted({_edge(choose) for _ in range(choose.randint(1, min(k - 1, 12)))})
        shape["ranges"] = Ranges(edges)
        request["edges"] = [f"{edge.numerator}/{edge.denominator}" for edge in edges]
        value = request["value"] = _number(choose, edges)
    elif kind == "tuple":
        views, value = random_tuple(choose, params.m)
        shape |= {"fields": views.fields, "views": views.views}
        request |= shape_of(views, params.m)
        request["value"] = {"tuple": value}
    else:
        value = choose.getrandbits(k)
        bits = [bool(value >> bit & 1) for bit in range(k)]
        request["value"] = choose.choice(({"bigint": str(value)}, bits))
    secret = choose.randbytes(choose.choice((16, 32, 64, 200)))
    collection = "".join(
        choose.choice(string.ascii_lowercase) for _ in range(choose.randint(1, 63))
    )
    period = choose.choice((None, None, "2026-W07", "2026-11-16"))
    cells = [("country", "NZ"), ("release", "1.0 (beta)")][: choose.randrange(3)]
    token = choose.randbytes(16)
    request |= {
        "secret": secret.hex(),
        "collection": collection,
        "period": period,
        "dimensions": cells,
        "token": token.hex(),
    }
    encoder = Encoder(params, secret=secret, collection=collection, period=period, **shape)
    traced = encoder.trace(value)
    key = derive_memo_key("null", secret, collection, encoder.memo_digest, encoder.cohort, period)
    batch = Batch.of(
        [Report(encoder.cohort, traced.permanent)],
        token=token,
        collection=collection,
        version=7,
        period=period or "2026-11-16",
        dimensions=cells,
        k=k,
    )
    return request, {
        "memo_digest": encoder.memo_digest,
        "cohort": encoder.cohort,
        "signal": pack(traced.signal, k).hex(),
        "permanent": pack(traced.permanent, k).hex(),
        "null_permanent": pack(permanent_response(params, key)(0, b""), k).hex(),
        "batch": encode_batch(batch).hex(),
    }


def random_tuple(choose: random.Random, m: int) -> tuple[Views, dict[str, Any]]:
    """Fields of any kinds with views of any shares, at most m of them; and a value."""
    fields: list[Field] = []
    value: dict[str, Any] = {}
    for name in choose.sample(("page", "channel", "beta", "age", "a_1"), choose.randint(2, 4)):
        kind = choose.choice(FIELD_KINDS)
        categories, ranges = None, None
        if kind == "string":
            value[name] = random_text(choose)
        elif kind == "category":
            categories = tuple(sorted({random_text(choose) for _ in range(choose.randint(1, 5))}))
            value[name] = choose.choice(categories)
        elif kind == "boolean":
            value[name] = choose.random() < 0.5
        else:
            edges = sorted({_edge(choose) for _ in range(choose.randint(1, 12))})
            ranges = Ranges(edges)
            value[name] = _number(choose, edges)
        fields.append(Field(name, kind, categories, ranges))
    names = [field.name for field in fields]
    listed = [tuple(choose.sample(names, len(names)))]
    listed += [(name,) for name in choose.sample(names, choose.randint(0, min(len(names), m - 1)))]
    choose.shuffle(listed)
    weights = [choose.random() + 0.01 for _ in listed]
    views = [
        View(chosen, weight / sum(weights)) for chosen, weight in zip(listed, weights, strict=True)
    ]
    return Views(fields, views), value


def _edge(choose: random.Random) -> Fraction:
    return choose.choice(
        (
            Fraction(choose.randint(-1000, 1000)),
            Fraction(choose.random() * 10.0 ** choose.randint(-300, 300)),
            Fraction(choose.randint(-(10**30), 10**30), choose.randint(1, 10**30)),
        )
    )


def _number(choose: random.Random, edges: list[Fraction]) -> float | int:
    """A number near or at an edge, or any; whole numbers are those that a double holds."""
    try:
        near = float(choose.choice(edges))
    except OverflowError:
        near = 0.0
    return choose.choice((near, -near, near * (1 + 2**-52), choose.randint(-(2**53), 2**53)))
