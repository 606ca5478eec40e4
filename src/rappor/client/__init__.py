"""The client: identity, ledger, outbox and upload, for applications. Standard library only."""

import logging

from rappor.client.client import Client
from rappor.client.forget import Forgotten
from rappor.client.preview import Preview
from rappor.client.problems import PROBLEMS
from rappor.client.status import STATES, CollectionStatus, Status, WaitingReports
from rappor.client.transport import Answer, Transport

__all__ = [
    "PROBLEMS",
    "STATES",
    "Answer",
    "Client",
    "CollectionStatus",
    "Forgotten",
    "Preview",
    "Status",
    "Transport",
    "WaitingReports",
]

# Without a handler, Python would print warnings to the standard error of the application.
logging.getLogger("rappor.client").addHandler(logging.NullHandler())
