"""Reports outside a process: packing, batches, the protocol. Standard library only."""

from rappor.wire.batch import Batch, reports_that_fit
from rappor.wire.binary import decode_batch, encode_batch
from rappor.wire.dimensions import OTHER
from rappor.wire.json_batch import decode_batch_json, encode_batch_json
from rappor.wire.packing import from_text, pack, to_text, unpack
from rappor.wire.protocol import (
    BINARY,
    JSON,
    MAX_BODY,
    MAX_INFLATED,
    MAX_REPORTS,
    PROBLEM_JSON,
    PROBLEMS,
    REPORTS_PATH,
    Problem,
    problem_json,
)

__all__ = [
    "BINARY",
    "JSON",
    "MAX_BODY",
    "MAX_INFLATED",
    "MAX_REPORTS",
    "OTHER",
    "PROBLEMS",
    "PROBLEM_JSON",
    "REPORTS_PATH",
    "Batch",
    "Problem",
    "decode_batch",
    "decode_batch_json",
    "encode_batch",
    "encode_batch_json",
    "from_text",
    "pack",
    "problem_json",
    "reports_that_fit",
    "to_text",
    "unpack",
]
