"""Job: one piece of long work, as pages see it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

WAITING, RUNNING, DONE, FAILED, CANCELLED = "waiting", "running", "done", "failed", "cancelled"
ENDED = frozenset({DONE, FAILED, CANCELLED})


class Progress(Protocol):
    """What a task calls now and then: what it does, and which share of all is done."""

    def __call__(self, text: str, share: float | None = None) -> None:
        """Say it; None where the share is not known."""


class JobResult(NamedTuple):
    """What a task returns.

    Attributes:
        meta: facts, ready for JSON.
        table: Arrow IPC bytes (or those of another file), or None.
    """

    meta: dict[str, Any]
    table: bytes | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of work at one moment; `Jobs.get` has it as it is now.

    Attributes:
        id: random.
        kind: which task, a key of TASKS.
        key: what the result is kept under; two jobs of one key do not run at a time.
        label: what it is, in words: "Decoding 100,000 candidates".
        actor: who started it.
        collection: which collection it is about, "" where none.
        state: waiting, running, done, failed or cancelled.
        share: which share of it is done, 0 to 1; None where that is not known.
        text: what it is doing.
        error: why it failed; "" where it did not.
        made: when it was asked for, in seconds since 1970.
        began: when it began; None before that.
        ended: when it ended; None before that.
    """

    id: str
    kind: str
    key: str
    label: str
    actor: str = ""
    collection: str = ""
    state: str = WAITING
    share: float | None = None
    text: str = "waiting for its turn"
    error: str = ""
    made: float = field(default_factory=time.time)
    began: float | None = None
    ended: float | None = None

    @property
    def over(self) -> bool:
        """Whether it has ended, one way or another."""
        return self.state in ENDED

    @property
    def seconds(self) -> float:
        """How long it has been at work, or was."""
        if self.began is None:
            return 0.0
        return max((self.ended or time.time()) - self.began, 0.0)

    @property
    def percent(self) -> str:
        r"""The share in words; "" where it is not known.

        >>> Job("1", "decode", "k", "Decoding", share=0.624).percent
        '62\xa0%'
        """
        return "" if self.share is None else f"{self.share:.0%}".replace("%", "\u00a0%")

    @property
    def doing(self) -> str:
        r"""What it is doing, in one line.

        >>> Job("1", "decode", "k", "Decoding", share=0.5, text="fitting").doing
        '50\xa0%, fitting, 0\xa0s'
        """
        parts = [self.percent, self.text, f"{self.seconds:.0f}\u00a0s"]
        return ", ".join(part for part in parts if part)

    def document(self) -> dict[str, Any]:
        """The job, ready for JSON."""
        return {
            "id": self.id,
            "kind": self.kind,
            "label": self.label,
            "collection": self.collection,
            "state": self.state,
            "share": self.share,
            "text": self.text,
            "doing": self.doing,
            "error": self.error,
            "seconds": round(self.seconds, 3),
        }
