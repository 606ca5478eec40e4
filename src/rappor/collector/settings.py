"""What one collector process is told, and the limits that it holds (R17-R19)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rappor import checks
from rappor.errors import ParamsError
from rappor.wire import MAX_INFLATED

KIB, MIB = 2**10, 2**20
MOST_HEADER = 16 * KIB  # bytes of a request line and its header fields
MOST_URL = 8 * KIB
MOST_PIPELINED = 8  # requests of one connection that wait behind another
MOST_MESSAGE = 4 * MIB  # bytes of a request on the wire, chunk sizes and trailers included
HEADER_SECONDS, BODY_SECONDS, IDLE_SECONDS = 5.0, 10.0, 15.0
ANSWER_SECONDS = 10.0  # until an answer must have been read, or fit the system's buffers
HANDSHAKE_SECONDS = 5.0  # of TLS, at the beginning and at the end
DRAIN_SECONDS = 8.0  # from SIGTERM to the last acknowledgement; ten seconds to the exit

LEVELS = ("debug", "info", "warning", "error")


@dataclass(frozen=True, slots=True)
class CollectorSettings:
    """One collector's settings; ParamsError names what is wrong.

    Attributes:
        data: the data folder, or the URL of a store.
        collections: the folder of collection files.
        host: the address to listen on.
        port: the port; 0 takes a free one, which the log names.
        tls_cert: a PEM certificate chain; with `tls_key` the collector speaks HTTPS.
        tls_key: its private key.
        keys: the file of keys; None accepts batches without a key.
        keys_optional: whether clients may do without a key of that file; gateways may not.
        rate: reports a second from one address prefix (/24, /56), and requests for pages; 0 does
            not limit.
        forwarded: whether the last entry of X-Forwarded-For is the sender's address, as a reverse
            proxy of ours writes it.
        queue_batches: batches that may wait for the writer.
        queue_bytes: and their bytes.
        group_batches: batches of one commit.
        most_connections: connections at once.
        prefix_connections: of those from one address prefix; nothing is limited with `forwarded`,
            where all come from the proxy, nor for this machine itself.
        log_level: debug, info, warning or error.
    """

    data: str | Path
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
    most_connections: int = 1024
    prefix_connections: int = 128
    log_level: str = "info"

    def __post_init__(self) -> None:
        checks.whole("port", self.port, 0, 65535)
        checks.whole("queue_batches", self.queue_batches, 1)
        checks.whole("queue_bytes", self.queue_bytes, MAX_INFLATED)
        checks.whole("group_batches", self.group_batches, 1)
        checks.whole("most_connections", self.most_connections, 1)
        checks.whole("prefix_connections", self.prefix_connections, 1)
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
