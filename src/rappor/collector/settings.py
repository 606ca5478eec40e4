"""The settings of a collector process, and its fixed limits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rappor import checks
from rappor.collector.cors import check_origin
from rappor.errors import ParamsError
from rappor.wire import MAX_INFLATED

KIB, MIB = 2**10, 2**20
MAX_HEADER = 16 * KIB  # bytes of a request line with its header fields
MAX_URL = 8 * KIB
MAX_PIPELINED = 8  # requests of one connection that wait for an earlier one
MAX_MESSAGE = 4 * MIB  # bytes of a whole request, including chunk sizes and trailers
HEADER_SECONDS, BODY_SECONDS, IDLE_SECONDS = 5.0, 10.0, 15.0
ANSWER_SECONDS = 10.0  # to read an answer that does not fit the system's buffers
HANDSHAKE_SECONDS = 5.0  # of TLS, when a connection opens and when it closes
DRAIN_SECONDS = 8.0  # from SIGTERM to the last answer; the process ends within ten seconds

LEVELS = ("debug", "info", "warning", "error")


@dataclass(frozen=True, slots=True)
class CollectorSettings:
    """The settings of one collector. ParamsError names a wrong one.

    Attributes:
        data: the data folder; None if the store is a database.
        collections: the folder of collection files.
        host: the address to listen on.
        port: the port; 0 takes a free one, which the log names.
        tls_cert: a PEM certificate chain; with `tls_key` the collector speaks HTTPS.
        tls_key: the certificate's private key.
        keys: the file of keys; None if keys are not required.
        keys_optional: whether clients may send without a key of that file. Gateways may not.
        rate: the limit of reports and page requests a second from one address prefix (/24, /56);
            0 for no limit.
        forwarded: whether the last entry of X-Forwarded-For is the sender's address. Only for a
            reverse proxy of your own that writes it.
        queue_batches: the most batches that may wait for the writer.
        queue_bytes: the most bytes of waiting batches.
        group_batches: the most batches of one commit.
        max_connections: the most open connections.
        max_prefix_connections: the most open connections from one address prefix. Does not apply to
            this machine, nor with `forwarded`, when all connections come from the proxy.
        allow_origins: the web pages that may send reports, by origin (`rappor.collector.cors`).
        log_level: debug, info, warning or error.
        store: the URL of a database that other collectors may use too; None for the data folder.
        share_port: whether other collectors of this machine listen on the same port.
        metrics_port: a port of 127.0.0.1 for the pages of this collector alone, and the only one
            with /metrics then; None if the pages are on `port`.
    """

    data: str | Path | None
    collections: str | Path
    host: str = "127.0.0.1"
    port: int = 8765
    tls_cert: str | Path | None = None
    tls_key: str | Path | None = None
    keys: str | Path | None = None
    keys_optional: bool = False
    rate: float = 50.0
    forwarded: bool = False
    queue_batches: int = 4096
    queue_bytes: int = 64 * MIB
    group_batches: int = 1024
    max_connections: int = 1024
    max_prefix_connections: int = 128
    allow_origins: tuple[str, ...] = ()
    log_level: str = "info"
    store: str | None = None
    share_port: bool = False
    metrics_port: int | None = None

    def __post_init__(self) -> None:
        if self.data is None and self.store is None:
            raise ParamsError("data or store must be given")
        checks.whole("port", self.port, 0, 65535)
        if self.metrics_port is not None:
            checks.whole("metrics_port", self.metrics_port, 1, 65535)
        checks.whole("queue_batches", self.queue_batches, 1)
        checks.whole("queue_bytes", self.queue_bytes, MAX_INFLATED)
        checks.whole("group_batches", self.group_batches, 1)
        checks.whole("max_connections", self.max_connections, 1)
        checks.whole("max_prefix_connections", self.max_prefix_connections, 1)
        for origin in self.allow_origins:
            check_origin(origin)
        if self.rate != 0:
            checks.positive("rate", self.rate)
        if self.keys_optional and self.keys is None:
            raise ParamsError("keys_optional goes with keys")
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ParamsError("tls_cert and tls_key go together")
        if self.log_level not in LEVELS:
            raise ParamsError(
                f"log_level must be one of {', '.join(LEVELS)}, got {checks.show(self.log_level)}"
            )
