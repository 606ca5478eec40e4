"""What can stop a client or its uploads: a stable code, and a sentence for people, for each.

A client stops rather than draw a second secret, or charge less than it spent: both would cost its
owner privacy without anyone noticing.
"""

from __future__ import annotations

from rappor import wire
from rappor.errors import RapporError

PROBLEMS = {
    "secret-missing": "the file `secret` was used before and is missing now. Nothing is reported, "
    "because a new secret would cost its owner another ε∞. Restore the file, or call forget()",
    "secret-damaged": "the file `secret` is damaged. Nothing is reported, because a new secret "
    "would cost its owner another ε∞. Restore the file, or call forget()",
    "secret-changed": "the ledger in this directory belongs to another secret. Give each account "
    "its own directory, restore the secret, or call forget()",
    "ledger-missing": "the file `ledger` was used before and is missing now. Nothing is reported, "
    "because the ε spent so far is unknown. Restore the file, or call forget()",
    "ledger-damaged": "the file `ledger` is damaged. Nothing is reported, because the ε spent so "
    "far is unknown. Restore the file, or call forget()",
    "ledger-outdated": "the file `ledger` is older than the newest report. Nothing is reported, "
    "because the ε spent since then is unknown. Restore the newest file, or call forget()",
    "marker-damaged": "the file `used` is damaged. Nothing is reported. If the files `secret` and "
    "`ledger` are unchanged, delete `used`",
    "slot-damaged": "the stored report of a one-time collection is damaged. Nothing more is "
    "reported to that collection, because a second draw would cost ε again",
    "directory-unusable": "the directory cannot be read, written or locked. Nothing is reported "
    "until it can be",
    "disk-full": "the disk is full. Nothing is reported until there is room",
    "directory-busy": "another process held the lock of the directory for too long; the report was "
    "not made",
    "no-entropy": "the operating system gave no randomness. Nothing is reported, because there is "
    "no safe substitute",
    "internal": "an error in rappor itself; see the log of `rappor.client`",
}

_NOT_THE_COLLECTOR = (
    "Check upload_to: this is not the answer of a collector, but of a proxy or another server"
)
UNTRUSTED = "no answer (SSLCertVerificationError)"
# Codes of `rappor.wire.PROBLEMS`, statuses without one, and `UNTRUSTED`: what a person has to
# correct; the reports wait.
REFUSALS = {
    "unauthorized": "Pass the collector's key for this application as ingest_key, or ask the "
    "operator to add the key that it has",
    "forbidden": "Ask the operator to allow the ingest key for this collection",
    "unknown-collection": "Ask the operator to give the collector this version of the definition",
    "not-found": "Check upload_to: no collector takes reports at this address",
    **dict.fromkeys(("401", "403", "404"), _NOT_THE_COLLECTOR),
    UNTRUSTED: "The collector's certificate has expired, is for another name than that in "
    "upload_to, or is not trusted here: for one of your own, name the authority's file as ca_file",
}


def reason_text(reason: str) -> str:
    """Why an upload failed, as the beginning of a sentence.

    Args:
        reason: a code of `rappor.wire.PROBLEMS`, an HTTP status, or already a sentence.

    >>> reason_text("forbidden"), reason_text("no answer (TimeoutError)")
    ('the collector answered 403 forbidden', 'no answer (TimeoutError)')
    """
    if reason in wire.PROBLEMS:
        return f"the collector answered {wire.PROBLEMS[reason].status} {reason}"
    return f"the collector answered {reason}" if reason.isdigit() else reason


class Stopped(RapporError):
    """Nothing can be reported; the code says why."""

    def __init__(self, code: str) -> None:
        """Take a code of `PROBLEMS`."""
        super().__init__(PROBLEMS[code])
        self.code = code
