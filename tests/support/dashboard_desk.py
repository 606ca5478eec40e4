"""A desk over the sample data, and a browser that talks to its application without a socket."""

import asyncio
import contextlib
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from rappor.dashboard.access.roles import Role
from rappor.dashboard.app import build
from rappor.dashboard.assets import Assets
from rappor.dashboard.catalogue import Catalogue
from rappor.dashboard.desk import Desk
from rappor.dashboard.jobs import Jobs
from rappor.dashboard.routes import PAGES
from rappor.dashboard.routing import Page
from rappor.dashboard.settings import Settings
from rappor.dashboard.state import State
from support.dashboard import Sample, sample_folder


class Clock:
    """A clock that only goes when it is told to."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.moment

    def go(self, **span: float) -> None:
        self.moment += timedelta(**span)


@contextlib.contextmanager
def made_desk(
    folder: Path, *, sample: Sample | None = None, now=None, **settings
) -> Iterator[Desk]:
    """A desk over the sample data, or over another folder."""
    sample = sample or sample_folder(folder)
    known = Settings(sample.data, sample.definitions, **settings)
    clock = {} if now is None else {"now": now}
    state = State(known.state_file, sample.definitions, **clock)
    jobs = Jobs(state)
    catalogue = Catalogue(sample.data, sample.definitions)
    try:
        yield Desk(known, catalogue, state, jobs, Assets(folder / "cache"))
    finally:
        jobs.close()
        state.close()


class Answer:
    """What the application answered."""

    def __init__(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        self.status_code, self.body = status, body
        decoded = [(name.decode(), value.decode()) for name, value in headers]
        self.headers = dict(decoded)
        self.cookies = [value for name, value in decoded if name == "set-cookie"]

    @property
    def text(self) -> str:
        return self.body.decode()


class Browser:
    """Cookies, forms and their tokens."""

    def __init__(self, desk: Desk, pages: tuple[Page, ...] = PAGES) -> None:
        self.desk, self.app = desk, build(desk, pages)
        self.cookies: dict[str, str] = {}

    def send(
        self,
        method: str,
        path: str,
        fields: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        body = b"" if fields is None else urlencode(fields).encode()
        named = {"host": "127.0.0.1:8766"}
        if self.cookies:
            named["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        if fields is not None:
            named["content-type"] = "application/x-www-form-urlencoded"
            named["content-length"] = str(len(body))
        named |= headers or {}
        answer = asyncio.run(self._ask(method, path, body, named))
        for cookie in answer.cookies:
            for name, morsel in SimpleCookie(cookie).items():
                if morsel["max-age"] == "0":
                    self.cookies.pop(name, None)
                else:
                    self.cookies[name] = morsel.value
        return answer

    async def _ask(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Answer:
        parts = urlsplit(path)
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": parts.path,
            "raw_path": parts.path.encode(),
            "query_string": parts.query.encode(),
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8766),
        }
        sent: list[dict] = []

        async def receive() -> dict:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: dict) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        content = b"".join(each.get("body", b"") for each in sent[1:])
        return Answer(sent[0]["status"], sent[0]["headers"], content)

    def get(self, path: str) -> Answer:
        return self.send("GET", path)

    def post(self, path: str, fields: Mapping[str, str]) -> Answer:
        return self.send("POST", path, {"csrf": self.csrf(), **fields})

    def csrf(self) -> str:
        found = re.search(r'name="csrf" value="([^"]*)"', self.get("/login?link=x").text)
        return found[1] if found else ""

    def log_in(self, role: Role) -> Answer:
        name = role.value.replace(" ", "-")
        secret = self.desk.state.new_link(name, "test", role)
        answer = self.post("/login", {"link": secret})
        assert answer.status_code == 303, answer.text
        return answer

    def links(self, path: str) -> list[str]:
        """Where a page's own links lead, apart from files and anchors."""
        found = re.findall(r'<a [^>]*href="(/[^"#]*)"', self.get(path).text)
        return sorted({each.replace("&amp;", "&") for each in found})
