"""The demo: a simulated crowd, a real server, real reports, and what can be learnt from them.

`population` (who holds what), `definitions` (what is collected), `crowd` (processes that encode and
send reports), `devices` (a few real clients), `server`, `run` (all steps in order), `results`
(decoding, compared with the truth). The truth stays in this package: it is neither sent nor stored.
"""

from rappor.errors import RapporError


class DemoError(RapporError):
    """The server or a process of the demo failed; the message says how."""
