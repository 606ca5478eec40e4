"""The address that logs a browser in once."""

from __future__ import annotations

from urllib.parse import urlencode


def login_link(address: str, secret: str) -> str:
    """Where the dashboard at an address takes a one-time secret.

    >>> login_link("https://stats.example.org/", "rpl_1")
    'https://stats.example.org/login?link=rpl_1'
    """
    return f"{address.rstrip('/')}/login?{urlencode({'link': secret})}"
