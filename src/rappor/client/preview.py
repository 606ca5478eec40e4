"""Preview: exactly what was sent and what will be sent, for the person whose data it is.

A request consists of its headers and these bytes. The secret and B' are never shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rappor.client.folder import Disk
from rappor.client.outbox import OUTBOX, SENT, parse_batch, state_of
from rappor.collection import Collection
from rappor.wire import BINARY, Batch, to_text, unpack


@dataclass(frozen=True, slots=True)
class PreviewedReport:
    """One batch as a person can read it, and as the bytes that are sent.

    Attributes:
        state: one of `rappor.client.outbox.STATES`.
        collection: its name.
        version: of the collection.
        period: the day or week; no other time is sent.
        dimensions: sent in clear, outside ε.
        cohort: the client's cohort, which decides the hash functions.
        bits: the report, bit k-1 first.
        token: 128 random bits, by which the collector counts a repeated upload once.
        body: all bytes of the request's body, in hex.
    """

    state: str
    collection: str
    version: int
    period: str
    dimensions: dict[str, str]
    cohort: int
    bits: str
    token: str
    body: str


@dataclass(frozen=True, slots=True)
class NextReport:
    """What a further report of a collection would send, without its random bits."""

    collection: str
    version: int
    description: str
    dimensions: dict[str, str]
    bits: int
    max_reports: int
    period: str
    epsilon_one: float
    max_epsilon: float


@dataclass(frozen=True, slots=True)
class Preview:
    """What a client sends.

    Attributes:
        upload_to: the address, or None.
        headers: of every request, in addition to Host, Content-Length and Connection.
        sent: the latest batches that were sent or may have been, oldest first.
        waiting: the batches in the outbox, oldest first.
        next: for each collection, what a further report would send.
    """

    upload_to: str | None
    headers: dict[str, str]
    sent: tuple[PreviewedReport, ...]
    waiting: tuple[PreviewedReport, ...]
    next: tuple[NextReport, ...]

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [f"Reports go to {self.upload_to or 'nowhere (no upload_to)'}."]
        for title, batches in (("Sent", self.sent), ("Waiting", self.waiting)):
            lines.append(f"{title}: {len(batches) or 'nothing'}")
            lines += [f"  {line}" for batch in batches for line in describe(batch)]
        for upcoming in self.next:
            lines.append(
                f"Next, from {upcoming.collection} version {upcoming.version}: {upcoming.bits} "
                f"randomized bits, at most {upcoming.max_reports} a {upcoming.period}"
            )
        return "\n".join(lines)


def describe(batch: PreviewedReport) -> list[str]:
    """A batch in two lines of text."""
    cell = ", ".join(f"{name} = {value}" for name, value in batch.dimensions.items())
    return [
        f"{batch.collection} version {batch.version}, {batch.period}"
        f"{', ' + cell if cell else ''}, cohort {batch.cohort} ({batch.state})",
        f"  {batch.bits}",
    ]


def read_batches(disk: Disk) -> tuple[tuple[PreviewedReport, ...], tuple[PreviewedReport, ...]]:
    """The sent and the waiting batches of a client's directory."""
    return tuple(_all(disk, SENT)), tuple(_all(disk, OUTBOX))


def next_reports(
    collections: Iterable[Collection], dimensions: Mapping[str, str]
) -> tuple[NextReport, ...]:
    """What a further report of each collection would send."""
    return tuple(
        NextReport(
            collection.name,
            collection.version,
            collection.description,
            dict(collection.cell(dimensions)),
            collection.params.k,
            1 if collection.one_time else collection.reports_per_period,
            collection.period,
            collection.epsilon_one,
            collection.max_epsilon,
        )
        for collection in collections
    )


def headers(with_key: bool) -> dict[str, str]:
    """The headers of a request, without the key."""
    found = {"Content-Type": BINARY}
    return found | {"Authorization": "Bearer (the ingest key)"} if with_key else found


def _all(disk: Disk, folder: str) -> Iterable[PreviewedReport]:
    for name in disk.names(folder):
        found = parse_batch(disk.read(name) or b"")
        if found is not None:
            yield from _shown(*found, state_of(name))


def _shown(batch: Batch, body: bytes, state: str) -> Iterable[PreviewedReport]:
    size = (batch.k + 7) // 8
    for number in range(batch.count):
        packed = batch.reports[number * size : (number + 1) * size]
        yield PreviewedReport(
            state,
            batch.collection,
            batch.version,
            batch.period,
            dict(batch.dimensions),
            int.from_bytes(batch.cohorts[2 * number : 2 * number + 2], "little"),
            to_text(unpack(packed, batch.k), batch.k),
            batch.token.hex(),
            body.hex(),
        )
