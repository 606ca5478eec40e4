"""Parts: what a client is made of, put together from the arguments of `Client.open`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rappor.checks import whole
from rappor.client.arguments import (
    check_address,
    check_dimensions,
    check_directory,
    check_file,
    check_key,
    check_methods,
    check_secret,
    gather,
    number,
)
from rappor.client.charging import Caps
from rappor.client.clock import Clock
from rappor.client.folder import Folder
from rappor.client.outbox import Outbox
from rappor.client.recorder import Recorder
from rappor.client.sender import Sender
from rappor.client.transport import HttpTransport, Transport
from rappor.collection import Collection


@dataclass(frozen=True, slots=True)
class Parts:
    """One client's parts: its directory, what makes reports, what sends them."""

    folder: Folder
    collections: Mapping[str, Collection]
    clock: Clock
    outbox: Outbox
    recorder: Recorder
    transport: Transport | None
    sender: Sender | None
    dimensions: Mapping[str, str]
    upload_to: str | None
    with_key: bool


def assemble(
    directory: str | os.PathLike[str],
    collections: Iterable[Collection | str | os.PathLike[str]],
    *,
    upload_to: str | None,
    dimensions: Mapping[str, str] | None,
    ingest_key: str | None,
    account_secret: bytes | None,
    max_epsilon: float,
    outbox_limit: int,
    jitter: float,
    ca_file: str | None,
    clock: Clock,
    transport: Transport | None,
) -> Parts:
    """Check the arguments, or raise ParamsError; nothing is written or sent yet."""
    check_methods("clock", clock, "time", "monotonic")
    if transport is not None:
        check_methods("transport", transport, "post", "abort", "resume")
    if ingest_key is not None:
        check_key(ingest_key)
    check_file("ca_file", ca_file)
    folder = Folder(check_directory(directory))
    found = gather(collections)
    given = check_dimensions(dimensions, found)
    outbox = Outbox(folder, whole("outbox_limit", outbox_limit, 1, 100_000))
    pause = number("jitter", jitter, 0, 86_400)
    recorder = Recorder(
        folder,
        clock,
        found,
        outbox=outbox,
        dimensions=given,
        account_secret=check_secret(account_secret),
        caps=Caps(number("max_epsilon", max_epsilon), account_secret is not None),
    )
    if transport is None and upload_to is not None:
        transport = HttpTransport(upload_to, clock=clock, ingest_key=ingest_key, ca_file=ca_file)
    elif upload_to is not None:
        check_address(upload_to)
    if isinstance(transport, HttpTransport):
        upload_to = transport.address
    sender = None if transport is None else Sender(folder, clock, outbox, transport, pause)
    return Parts(
        folder,
        found,
        clock,
        outbox,
        recorder,
        transport,
        sender,
        given,
        upload_to,
        ingest_key is not None,
    )
