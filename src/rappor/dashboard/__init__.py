"""Web pages for analyst, operator and privacy officer: a process of its own, on loopback (R42)."""
