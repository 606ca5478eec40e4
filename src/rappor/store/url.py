"""The URL of a database, and what may be shown of it."""

from __future__ import annotations

from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from rappor.errors import StoreError

SCHEMES = ("postgresql", "postgres")
_SECRETS = ("password", "sslpassword")  # query parameters that nobody may read


def is_url(text: str) -> bool:
    """Whether a store's name is a URL and not a folder.

    >>> is_url("postgresql://db.example.org/rappor"), is_url("data")
    (True, False)
    """
    return "://" in text


def check_url(text: str) -> None:
    """StoreError unless rappor knows this kind of URL."""
    scheme = text.partition("://")[0]
    if scheme not in SCHEMES:
        raise StoreError(
            f"a store is a folder or a postgresql:// URL; {scheme[:40]}:// is not supported"
        )


def split_password(url: str) -> tuple[str, str | None]:
    """The URL without passwords, and the password of the user if there was one.

    >>> split_password("postgresql://ada:s3cret@db.example.org/rappor?sslmode=verify-full")
    ('postgresql://ada@db.example.org/rappor?sslmode=verify-full', 's3cret')
    >>> split_password("postgresql://db.example.org/rappor?password=s3cret&user=ada")
    ('postgresql://db.example.org/rappor?user=ada', 's3cret')
    >>> split_password("postgresql:///rappor?host=/run/postgresql")
    ('postgresql:///rappor?host=/run/postgresql', None)
    """
    parts = urlsplit(url)
    user, at, hosts = parts.netloc.rpartition("@")
    name, _, secret = user.partition(":")
    password = unquote(secret) or None
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    public = [pair for pair in pairs if pair[0] not in _SECRETS]
    for key, value in pairs:
        if key == "password":
            password = value or password
    query = parts.query
    if len(public) != len(pairs):
        query = urlencode(public, quote_via=quote, safe="/:")
    # urlunsplit drops the empty host of postgresql:///name.
    rest = urlunsplit(("", "", parts.path, query, ""))
    return f"{parts.scheme}://{name}{at}{hosts}{rest}", password


def public_url(url: str) -> str:
    """The URL as messages, logs and files may show it."""
    return split_password(url)[0]
