"""A job as pages show it: how far it is while it runs, and the result at its end."""

import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rappor.dashboard.auth.roles import Role
from rappor.dashboard.jobs import worker_process
from support.dashboard_context import WorkerInThread, entered, made_context


class Stepping(WorkerInThread):
    """A worker that does its task, and then tells how far it was one step at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.told, self.next = threading.Semaphore(0), threading.Semaphore(0)

    def run(self, kind: str, arguments: dict[str, Any]) -> Iterator[worker_process.Message]:
        for message in super().run(kind, arguments):
            yield message  # and comes back when the queue has taken it
            self.told.release()
            assert self.next.acquire(timeout=300)


@pytest.mark.slow
def test_a_page_shows_how_far_a_decode_is_until_it_is_done(tmp_path: Path) -> None:
    at_work = Stepping()
    with made_context(tmp_path, at_work=lambda: at_work) as context:
        analyst = entered(context, Role.ANALYST)
        found = re.search(r'data-job="([^"]+)"', analyst.get("/collections/homepage").text)
        assert found is not None

        def look() -> dict[str, Any]:
            now: dict[str, Any] = json.loads(analyst.get(f"/jobs/{found[1]}.json").text)
            return now

        shares: list[float] = []
        while look()["state"] in ("waiting", "running"):
            if not at_work.told.acquire(timeout=0.01):
                continue
            now, page = look(), analyst.get("/collections/homepage").text
            assert (now["state"], 'data-state="loading"' in page) == ("running", True)
            if now["share"] is not None:
                assert f'<progress max="1" value="{now["share"]}"' in page
                shares.append(round(now["share"], 9))
            assert analyst.get("/").status_code == 200  # other pages answer meanwhile
            at_work.next.release()
        assert (look()["state"], look()["share"]) == ("done", 1)
        assert 'data-state="ready"' in analyst.get("/collections/homepage").text
        assert shares[0] == 0
        assert shares == sorted(shares)
        assert len(set(shares)) > 3
