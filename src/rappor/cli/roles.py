"""Which verbs are whose: `rappor --help` and docs/start-here.md group them by role."""

from __future__ import annotations

# Role, and what it does here -> its verbs in the order of use; each verb is in one group.
ROLES: dict[str, tuple[str, ...]] = {
    "everyone, to see it work": ("demo", "completion"),
    "engineer, to report from an application": ("collection", "client", "explain", "encode"),
    "operator, to run the collector and the dashboard": (
        *("serve", "collect", "dashboard", "access", "keys", "status", "upgrade"),
        *("backup", "restore", "retain", "import", "export", "lake"),
    ),
    "analyst, to get from reports to results": (
        *("decode", "compare", "associate", "run", "aggregate", "candidates"),
    ),
    "privacy officer, to see what is promised and what an attacker learns": (
        *("privacy", "attack", "plan"),
    ),
    "researcher, to simulate populations and reproduce the paper": ("simulate", "reproduce"),
}
