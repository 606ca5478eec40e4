"""Queries of addresses: parts that no decode could use are refused."""

from collections.abc import Iterator

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
