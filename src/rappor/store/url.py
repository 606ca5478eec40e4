"""The URL of a database, and what may be shown of it."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote

from rappor.errors import StoreError

SCHEMES = ("postgresql", "postgres")
_PASSWORD = "password"  # noqa: S105 - the name of a parameter
# Parameters of libpq that nobody may read.
_SECRETS = (
    _PASSWORD,
    "sslpassword",
    "oauth_client_secret",
    "scram_client_key",
    "scram_server_key",
)
# All parameters of libpq 18. Another name may be a piece of a password that holds & and =.
_PARAMETERS = (
    *_SECRETS,
    "application_name",
    "channel_binding",
    "client_encoding",
    "connect_timeout",
    "dbname",
    "fallback_application_name",
    "gssdelegation",
    "gssencmode",
    "gsslib",
    "host",
    "hostaddr",
    "keepalives",
    "keepalives_count",
    "keepalives_idle",
    "keepalives_interval",
    "krbsrvname",
    "load_balance_hosts",
    "max_protocol_version",
    "min_protocol_version",
    "oauth_client_id",
    "oauth_issuer",
    "oauth_scope",
    "options",
    "passfile",
    "port",
    "replication",
    "require_auth",
    "requirepeer",
    "service",
    "servicefile",
    "ssl",
    "ssl_max_protocol_version",
    "ssl_min_protocol_version",
    "sslcert",
    "sslcertmode",
    "sslcompression",
    "sslcrl",
    "sslcrldir",
    "sslkey",
    "sslkeylogfile",
    "sslmode",
    "sslnegotiation",
    "sslrootcert",
    "sslsni",
    "target_session_attrs",
    "tcp_user_timeout",
    "user",
)
_MALFORMED = (
    "not a URL of a database that rappor can read; in a password, write each of "
    "% / ? # @ : [ ] & = and space as % and two digits, or give the password in PGPASSWORD"
)
_MEANINGLESS = re.compile(r"%(?![0-9A-Fa-f]{2})|%00|\s")  # libpq drops spaces or refuses them
_USER = re.compile(r"[^?#&=\[\]]*")
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]+(?:%25?[\w.-]+)?\]|[^\[\]:]*)(?::[0-9]*)?")


def is_url(text: str) -> bool:
    """Whether a store's name is a URL and not a folder.

    >>> is_url("postgresql://db.example.org/rappor"), is_url("data")
    (True, False)
    """
    return "://" in text


def check_url(text: str) -> None:
    """StoreError unless rappor knows this kind of URL and can read it. Names no part of it."""
    if text.partition("://")[0] not in SCHEMES:
        scheme = text.partition("://")[0]
        named = f"{scheme}://" if re.fullmatch(r"[a-z][a-z0-9+.-]{0,20}", scheme) else "this"
        raise StoreError(f"a store is a folder or a postgresql:// URL; {named} is not supported")
    _split(text)


class _Parts(NamedTuple):
    """The parts of a URL, as they are written there.

    Attributes:
        scheme: what comes before `://`.
        user: the user; None if there is no `@`.
        password: what follows the user.
        place: the hosts and the name of the database.
        query: the parameters, by their names without escapes.
    """

    scheme: str
    user: str | None
    password: str
    place: str
    query: tuple[tuple[str, str], ...]


def _split(url: str) -> _Parts:
    """The parts as libpq finds them, or StoreError.

    libpq ends the user and password at the first `@`, unless a `/` comes before it; it knows no
    fragment. In a URL with a second `@`, or with one that ends no user, a password may have been
    cut in the wrong place: it is refused, because its pieces would be shown as hosts or names.
    """
    scheme, _, rest = url.partition("://")
    before, at, after = rest.partition("@")
    user, password = None, ""
    if at and "/" not in before:
        user, _, password = before.partition(":")
        rest = after
    hosts = re.split("[/?]", rest, maxsplit=1)[0]
    place, _, query = rest.partition("?")
    pairs = [parameter.partition("=") for parameter in query.split("&")] if query else []
    if (
        "@" in rest
        or _MEANINGLESS.search(url)
        or (user is not None and not _USER.fullmatch(user))
        or not all(map(_HOST.fullmatch, hosts.split(",")))
        or any(not equals or "=" in value for _, equals, value in pairs)
    ):
        raise StoreError(_MALFORMED)
    named = tuple((_unquoted(name), f"{name}={value}") for name, _, value in pairs)
    if not all(name in _PARAMETERS for name, _ in named):
        raise StoreError(_MALFORMED)
    return _Parts(scheme, user, password, place, named)


def _unquoted(text: str) -> str:
    """Without escapes; bytes that are not UTF-8 stay what they are in an environment variable."""
    return unquote(text, errors="surrogateescape")


def split_password(url: str) -> tuple[str, str | None]:
    """The URL without secrets, and the password of the user if there was one.

    >>> split_password("postgresql://ada:s3cret@db.example.org/rappor?sslmode=verify-full")
    ('postgresql://ada@db.example.org/rappor?sslmode=verify-full', 's3cret')
    >>> split_password("postgresql://db.example.org/rappor?password=s3cret&user=ada")
    ('postgresql://db.example.org/rappor?user=ada', 's3cret')
    >>> split_password("postgresql:///rappor?host=/run/postgresql")
    ('postgresql:///rappor?host=/run/postgresql', None)

    Raises:
        StoreError: libpq would read the URL in another way, or not at all.
    """
    parts = _split(url)
    password = _unquoted(parts.password) or None
    for name, pair in parts.query:
        if name == _PASSWORD:
            password = _unquoted(pair.partition("=")[2]) or password
    public = "&".join(pair for name, pair in parts.query if name not in _SECRETS)
    user = "" if parts.user is None else f"{parts.user}@"
    return f"{parts.scheme}://{user}{parts.place}{'?' if public else ''}{public}", password


def other_secrets(url: str) -> list[str]:
    """The names of secrets other than the password that a URL holds.

    >>> other_secrets("postgresql://db.example.org/rappor?sslpassword=s3cret")
    ['sslpassword']
    """
    return [name for name, _ in _split(url).query if name in _SECRETS and name != _PASSWORD]


def public_url(url: str) -> str:
    """The URL as messages, logs and files may show it; without its parts if it is malformed.

    >>> public_url("postgresql://ada:s3/cret@db.example.org/rappor")
    'postgresql://...'
    """
    try:
        return split_password(url)[0]
    except StoreError:
        return "postgresql://..."
