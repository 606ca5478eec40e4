"""The settings of one dashboard process."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from rappor import checks
from rappor.decoding.saved_candidates import STATE_FILE as STATE_FILE
from rappor.errors import ParamsError
from rappor.store.archive import Companion

APPLICATION_ID = 0x52505244  # "RPRD"
STATE_SCHEMA = 2  # the number of migrations in `state.database`
# What a backup carries of it: all but sessions and links, which would let people in again.
STATE = Companion(
    STATE_FILE,
    APPLICATION_ID,
    left_out=("DELETE FROM sessions", "DELETE FROM links"),
    figures={
        "accounts": "SELECT count(*) FROM accounts WHERE revoked IS NULL",
        "candidate lists": "SELECT count(DISTINCT collection) FROM candidates",
    },
)
DEFAULT_PORT = 8766
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?")


@dataclass(frozen=True, slots=True)
class DashboardSettings:
    """One dashboard's settings; ParamsError names what is wrong.

    Attributes:
        data: the data folder: the store, read only, and the dashboard's own state.
        collections: the folder of collection files, for drafts and lists of candidates; or None.
        host: the address to listen on.
        port: the port; 0 takes a free one.
        collector: where the collector of the same data folder answers, for its figures; or None.
        url: the address that people use, if an HTTPS proxy of yours stands in front of it.
        simulated: whether the data are simulated: every page says so.
    """

    data: Path
    collections: Path | None = None
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    collector: str | None = None
    url: str | None = None
    simulated: bool = False

    def __post_init__(self) -> None:
        checks.whole("port", self.port, 0, 65535)
        for name in ("collector", "url"):
            value = getattr(self, name)
            if value is not None and not _is_address(value):
                raise ParamsError(f"{name} must be an http or https address, got {value!r}")
        if self.url is not None and not _HOST.fullmatch(_bare(self.url)):
            raise ParamsError(
                f"url must be only the scheme and host of the dashboard, such as "
                f"https://stats.example.org; got {self.url!r}"
            )

    @property
    def state_file(self) -> Path:
        """The file of the dashboard's own state."""
        return self.data / STATE_FILE

    @property
    def address(self) -> str:
        """The address that people use.

        >>> DashboardSettings(Path("data"), host="::1", port=8766).address
        'http://[::1]:8766'
        """
        if self.url is not None:
            return f"{urlsplit(self.url).scheme}://{_bare(self.url)}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def secure(self) -> bool:
        """Whether browsers use HTTPS, so that cookies can be limited to HTTPS."""
        return self.url is not None and urlsplit(self.url).scheme == "https"

    def listening(self, port: int) -> DashboardSettings:
        """The same settings with the port that was taken."""
        return replace(self, port=port)

    def knows_host(self, header: str) -> bool:
        """Whether a Host header names this dashboard; refuses other names for its address.

        >>> own = DashboardSettings(Path("data"), url="https://stats.example.org")
        >>> own.knows_host("127.0.0.1:8766"), own.knows_host("stats.example.org")
        (True, True)
        >>> own.knows_host("attacker.example")
        False
        """
        if not _HOST.fullmatch(header):
            return False
        try:
            name = urlsplit(f"//{header}").hostname or ""
        except ValueError:
            return False
        if name == "localhost" or name == self.host:
            return True
        if self.url is not None and name == urlsplit(self.url).hostname:
            return True
        try:
            return ipaddress.ip_address(name).is_loopback
        except ValueError:
            return False


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False


def _bare(url: str) -> str:
    """An address without its scheme and its last slash.

    >>> _bare("https://stats.example.org/")
    'stats.example.org'
    """
    return url.partition("://")[2].removesuffix("/")


def login_link(address: str, secret: str) -> str:
    """The address that logs a browser in once.

    >>> login_link("https://stats.example.org/", "rpl_1")
    'https://stats.example.org/login?link=rpl_1'
    """
    return f"{address.rstrip('/')}/login?{urlencode({'link': secret})}"
