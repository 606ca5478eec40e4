"""A context over the sample data, and a browser that talks to its application without a socket."""

import asyncio
import contextlib
import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from datetime import UTC, datetime, timedelta
from http.cookies import SimpleCookie
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch
from urllib.parse import urlencode, urlsplit

from rappor.dashboard import background_cache
from rappor.dashboard.app import build
from rappor.dashboard.assets import Assets
from rappor.dashboard.auth.roles import Role
from rappor.dashboard.catalogue import Catalogue
from rappor.dashboard.context import Context
from rappor.dashboard.jobs import Job, Jobs, worker_process
from rappor.dashboard.jobs import queue as jobs_module
from rappor.dashboard.page_access import Page
from rappor.dashboard.routes import PAGES
from rappor.dashboard.settings import DashboardSettings
from rappor.dashboard.state import DashboardState
from support.dashboard import Sample, sample_folder


class Clock:
    """A clock that only goes when it is told to."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.moment

    def go(self, **span: float) -> None:
        self.moment += timedelta(**span)


class WorkerInThread:
    """A worker without a process: tasks run in the queue's own thread.

    A process of its own takes more than a second to start; tests/e2e/test_dashboard_jobs.py has
    that. Arguments are pickled as they would be on their way to one.
    """

    alive, reason = True, "it was killed"

    def __init__(self) -> None:
        self._killed = False

    def run(self, kind: str, arguments: dict[str, Any]) -> Iterable[worker_process.Message]:
        said: list[worker_process.Message] = []

        def send(message: worker_process.Message) -> None:
            if self._killed:
                raise InterruptedError
            said.append(message)

        given = pickle.loads(pickle.dumps(arguments))
        line: Any = SimpleNamespace(send=send)
        last = worker_process._run(kind, given, line)
        return [*said, last]

    def kill(self) -> None:
        self._killed = True


@contextlib.contextmanager
def made_jobs(state: jobs_module.JobStore, at_work: Callable[[], Any]) -> Iterator[Jobs]:
    """A queue whose work is done by another kind of worker."""
    with patch.object(jobs_module, "WorkerProcess", at_work):
        jobs = Jobs(state)
        try:
            yield jobs
        finally:
            jobs.close()


def until_over(jobs: Jobs, job: Job) -> Job:
    """The job after its end."""
    ended = jobs.wait(job.id, 300)
    assert ended is not None
    assert ended.over, ended
    return ended


@contextlib.contextmanager
def always_fresh() -> Iterator[None]:
    """Pages show what is stored by then, however long it takes to look: no older picture."""
    with patch.multiple(background_cache, PATIENCE_SECONDS=300.0, _NO_REST_SECONDS=float("inf")):
        yield


@contextlib.contextmanager
def made_context(
    folder: Path,
    *,
    sample: Sample | None = None,
    now: Callable[[], datetime] | None = None,
    at_work: Callable[[], Any] = WorkerInThread,
    **settings: Any,
) -> Iterator[Context]:
    """A context over the sample data, or over another folder."""
    sample = sample or sample_folder(folder)
    known = DashboardSettings(sample.data, sample.definitions, **settings)
    clock = {} if now is None else {"now": now}
    state = DashboardState(known.state_file, sample.definitions, **clock)
    catalogue = Catalogue(sample.data, sample.definitions)
    try:
        with always_fresh(), made_jobs(state, at_work) as jobs:
            yield Context(known, catalogue, state, jobs, Assets(folder / "cache"))
    finally:
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

    def __init__(self, context: Context, pages: tuple[Page, ...] = PAGES) -> None:
        self.context, self.app = context, build(context, pages)
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
        sent: list[MutableMapping[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: MutableMapping[str, Any]) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        content = b"".join(each.get("body", b"") for each in sent[1:])
        return Answer(sent[0]["status"], sent[0]["headers"], content)

    def send_body(self, path: str, body: bytes, boundary: str) -> Answer:
        """A form with files, as it is on its way."""
        headers = {"host": "127.0.0.1:8766", "content-length": str(len(body))}
        headers["content-type"] = f"multipart/form-data; boundary={boundary}"
        headers["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        return asyncio.run(self._ask("POST", path, body, headers))

    def get(self, path: str) -> Answer:
        return self.send("GET", path)

    def post(self, path: str, fields: Mapping[str, str]) -> Answer:
        return self.send("POST", path, {"csrf": self.csrf(), **fields})

    def csrf(self) -> str:
        found = re.search(r'name="csrf" value="([^"]*)"', self.get("/login?link=x").text)
        return found[1] if found else ""

    def log_in(self, role: Role) -> Answer:
        name = role.value.replace(" ", "-")
        secret = self.context.state.new_link(name, "test", role)
        answer = self.post("/login", {"link": secret})
        assert answer.status_code == 303, answer.text
        return answer

    def links(self, path: str) -> list[str]:
        """Where a page's own links lead, apart from files and anchors."""
        found = re.findall(r'<a [^>]*href="(/[^"#]*)"', self.get(path).text)
        return sorted({each.replace("&amp;", "&") for each in found})


def is_in(browser: Browser) -> bool:
    """Whether the browser is logged in."""
    return browser.get("/").status_code == 200


def entered(context: Context, role: Role = Role.VIEWER) -> Browser:
    """A browser that has just logged in."""
    browser = Browser(context)
    browser.log_in(role)
    return browser
