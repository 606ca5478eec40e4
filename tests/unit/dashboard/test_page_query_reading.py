"""Queries of addresses: parts that no decode could use are refused."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rappor.dashboard.auth.roles import Role
from support.dashboard_context import Browser, entered, made_context


@pytest.fixture(scope="module")
def viewer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with made_context(tmp_path_factory.mktemp("views")) as context:
        yield entered(context, Role.VIEWER)


@pytest.mark.parametrize("alpha", ["1e-320", "1e-300", "1e-17", "5e-324", "1e-400", "0.5e-9"])
@pytest.mark.parametrize("page", ["", "/trends", "/diagnostics", ".json", "/trends.csv"])
def test_an_error_rate_that_nothing_can_reach_is_refused(
    viewer: Browser, alpha: str, page: str
) -> None:
    answer = viewer.get(f"/collections/homepage{page}?alpha={alpha}")
    assert answer.status_code == 400
    assert "alpha must be" in answer.text.lower()


@pytest.mark.parametrize("page", ["", "/trends", "/diagnostics", ".json"])
def test_a_decoder_of_ones_own_is_never_run_by_a_page(
    viewer: Browser, page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = f"open({str(tmp_path / 'imported')!r}, 'w').close()\n"
    (tmp_path / "this_would_be.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    refused = viewer.get(f"/collections/homepage{page}?method=this_would_be:code")
    assert refused.status_code == 400
    usual = viewer.get(f"/collections/homepage{page}")
    ignored = viewer.get(f"/collections/homepage{page}?decoder=this_would_be:code")
    assert ignored.status_code == usual.status_code
    assert not (tmp_path / "imported").exists()
