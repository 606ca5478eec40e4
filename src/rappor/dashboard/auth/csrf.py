"""That a form was sent from a page of ours: its token, and what the browser says about its origin.

The token is an HMAC with the secret that the visitor's cookie carries, which no other site can
read. Cookies are SameSite=Strict besides, so that a foreign form comes without them.
"""

from __future__ import annotations

import hmac
from urllib.parse import urlsplit

from starlette.requests import Request

FIELD = "csrf"


def token_for(secret: str) -> str:
    """What a form has to bring back, from the secret in the cookie.

    >>> len(token_for("abc")), token_for("abc") == token_for("abd")
    (64, False)
    """
    return hmac.digest(secret.encode(), b"rappor dashboard form", "sha256").hex()


def from_here(request: Request) -> bool:
    """Whether the browser says that a request came from a page of this origin.

    What a browser does not say is not held against it: the token decides. Under our referrer policy
    a browser sends "null" as the origin of a form, and says same-origin beside it.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("host", "")


def good(request: Request, expected: str, given: object) -> bool:
    """Whether a form may act."""
    if not expected or not isinstance(given, str) or not given.isascii():
        return False
    return from_here(request) and hmac.compare_digest(expected, given)
