"""Preview: every batch that left, or may have left, is shown as such."""

import pytest

from rappor.client.outbox import STATES, Outbox
from rappor.client.preview import read_batches
from rappor.client.sender import Sender
from rappor.client.transport import Answer
from rappor.wire import encode_batch
from support.client import LIMIT, FakeTransport, Setting, batch


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (Answer(204), "sent"),
        (Answer(422, "wrong-params"), "sent, and refused"),
        (OSError("the answer was lost"), STATES["sent", ".tried"]),
    ],
)
def test_every_batch_that_left_is_shown_as_sent_whatever_came_of_it(
    answer: Answer | Exception, state: str
) -> None:
    setting = Setting(answer)
    setting.outbox.put(1, batch())
    setting.send()
    if isinstance(answer, Exception):
        (waiting,) = read_batches(setting.disk)[1]
        assert waiting.state == STATES["outbox", ".tried"]
        setting.clock.forward(20)
        setting.send()
    sent, waits = read_batches(setting.disk)
    assert waits == ()
    (shown,) = sent
    assert (shown.state, bytes.fromhex(shown.body)) == (state, encode_batch(batch()))


def test_a_batch_that_may_have_left_is_shown_after_opting_out_and_when_crowded_out() -> None:
    for end in ("opted out", "crowded out"):
        setting = Setting(OSError("lost"))
        small = Outbox(setting.disk, 2)
        small.put(1, batch())
        setting.send()
        if end == "opted out":
            small.clear()
        else:
            small.put(2, batch(2))
            small.put(3, batch(3))
        assert [each.state for each in read_batches(setting.disk)[0]] == [STATES["sent", ".tried"]]


def test_that_a_batch_is_on_its_way_is_written_before_it_leaves() -> None:
    class Dies(FakeTransport):
        def post(self, body: bytes, timeout: float) -> Answer:
            raise SystemExit  # killed in the middle of the request

    setting = Setting()
    setting.outbox.put(1, batch())
    sender = Sender(setting.disk, setting.clock, setting.outbox, Dies(), 0)
    with pytest.raises(SystemExit):
        sender.send(until=setting.clock.monotonic() + LIMIT, now=True)
    setting.outbox.clear()
    assert [each.state for each in read_batches(setting.disk)[0]] == [STATES["sent", ".tried"]]
