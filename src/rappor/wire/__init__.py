"""Reports outside a process: packing, batches, a collector's errors. Standard library only."""

from rappor.wire.batch import MAX_BODY, MAX_INFLATED, MAX_REPORTS, Batch, reports_that_fit
from rappor.wire.binary import BINARY, decode_batch, encode_batch
from rappor.wire.cells import OTHER
from rappor.wire.json_batch import JSON, decode_batch_json, encode_batch_json
from rappor.wire.packing import from_text, pack, to_text, unpack
from rappor.wire.problems import PROBLEM_JSON, PROBLEMS, Problem, problem_json

__all__ = [
    "BINARY",
    "JSON",
    "MAX_BODY",
    "MAX_INFLATED",
    "MAX_REPORTS",
    "OTHER",
    "PROBLEMS",
    "PROBLEM_JSON",
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
