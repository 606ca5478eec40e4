"""The client: identity, ledger, outbox and upload, for applications. Standard library only."""

import logging

from rappor.client.client import Client
from rappor.client.forget import Forgotten
from rappor.client.preview import Preview
from rappor.client.problems import PROBLEMS
from rappor.client.status import STATES, CollectionStatus, Status
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
]

# Nothing goes to the host's standard error unless the host asks for logs.
logging.getLogger("rappor.client").addHandler(logging.NullHandler())
