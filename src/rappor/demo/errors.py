"""What can go wrong in a demo, in one line."""

from __future__ import annotations

from rappor.errors import RapporError


class DemoError(RapporError):
    """The server or a process of the demo failed; the message says how."""
