"""Downloads that have to be made first: they wait for their job, and hold up nothing else."""

import threading
from pathlib import Path

import pytest

from rappor.dashboard.auth.roles import Role
from rappor.dashboard.jobs.queue import Job
from rappor.dashboard.results.page import MAX_DOWNLOADS
from support.dashboard_context import Browser, made_context
from support.waiting import wait_for


@pytest.mark.slow
def test_downloads_that_wait_do_not_hold_up_the_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with made_context(tmp_path) as context:
        browser = Browser(context)
        browser.log_in(Role.ANALYST)
        free, waiting = threading.Event(), []

        def start(*_: object, **__: object) -> Job:
            return Job("x", "google", "k", "held")

        def wait(_number: str, _seconds: float) -> None:
            waiting.append(1)
            assert free.wait(300)

        monkeypatch.setattr(context.jobs, "start", start)
        monkeypatch.setattr(context.jobs, "wait", wait)
        found: list[str] = []

        def load(number: int) -> None:
            path = f"/collections/homepage.google.zip?alpha=0.1{number:02}"
            found.append(browser.get(path).text)

        threads = [threading.Thread(target=load, args=(number,)) for number in range(12)]
        for thread in threads:
            thread.start()
        try:
            wait_for(lambda: len(found) == 12 - MAX_DOWNLOADS and len(waiting) == MAX_DOWNLOADS)
            refused = len(found)
        finally:
            free.set()
            for thread in threads:
                thread.join()
        assert (len(waiting), refused) == (MAX_DOWNLOADS, 12 - MAX_DOWNLOADS)
        assert sum("Too much at once" in text for text in found) == refused
