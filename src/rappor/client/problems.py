"""What can stop a client, by a code that stays and a sentence for people (DESIGN, choice 5)."""

from __future__ import annotations

from rappor.errors import RapporError

PROBLEMS = {
    "secret-missing": "the secret is gone although it was used: nothing is reported, because a new "
    "one would cost its owner another ε∞. Restore the file `secret`, or call forget()",
    "secret-damaged": "the file `secret` is damaged: nothing is reported, because a new one would "
    "cost its owner another ε∞. Restore it, or call forget()",
    "secret-changed": "the ledger in this directory belongs to another secret: give each account "
    "a directory of its own, restore the secret, or call forget()",
    "ledger-missing": "the ledger is gone although it was used: nothing is reported, because what "
    "was spent is not known. Restore the file `ledger`, or call forget()",
    "ledger-damaged": "the file `ledger` is damaged: nothing is reported, because what was spent "
    "is not known. Restore it, or call forget()",
    "ledger-outdated": "the file `ledger` is older than reports that were made: nothing is "
    "reported, because what was spent since is not known. Restore the newest one, or call forget()",
    "marker-damaged": "the file `used` is damaged: nothing is reported. If secret and ledger are "
    "as they were, delete it",
    "slot-damaged": "the kept report of a One-time collection is damaged: that collection reports "
    "nothing more, because a second draw would cost again",
    "directory-unusable": "the directory cannot be read, written or locked: nothing is reported "
    "until it can",
    "disk-full": "the disk is full: nothing is reported until there is room",
    "directory-busy": "another process held the directory for too long; the report was not made",
    "no-entropy": "the operating system gave no randomness, and nothing weaker is used instead",
    "internal": "an error in the client itself; see the log line of `rappor.client`",
}


class Stopped(RapporError):
    """Nothing can be reported, for the reason that the code names."""

    def __init__(self, code: str) -> None:
        """Take one of `PROBLEMS`."""
        super().__init__(PROBLEMS[code])
        self.code = code
