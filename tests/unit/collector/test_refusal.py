"""Refusals: status, code, and when to try again."""

import json

import pytest

from rappor.collector.refusal import Refusal
from rappor.wire import PROBLEMS


@pytest.mark.parametrize("code", PROBLEMS)
def test_a_refusal_says_when_to_try_again_and_only_then(code: str) -> None:
    status, headers, body = Refusal(code, "why").answer()
    named = dict(headers)
    problem = PROBLEMS[code]
    assert status == problem.status
    assert json.loads(body)["detail"] == "why"
    assert (b"retry-after" in named) == problem.retry
    assert named[b"content-length"] == b"%d" % len(body)
    assert Refusal(code).raw().startswith(b"HTTP/1.1 %d " % problem.status)
