"""A collection of kind tuple among the others: listed, never decoded, and no page breaks."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rappor import Params
from rappor.collection import Collection
from rappor.dashboard.auth.roles import Role
from rappor.dashboard.context import Context
from rappor.dashboard.prefetch import Prefetcher
from rappor.simulate import tuples
from support.dashboard import Sample, week
from support.dashboard_context import Browser, made_context
from support.joint_tables import dependent, tuple_views

VIEWS = tuple_views(("y0", "y1", "y2"))
PARAMS = Params(64, 1, 16, 0.2001, 0.2239, 0.5307)


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    sample = Sample(tmp_path)
    install = Collection(
        "install", 1, PARAMS, kind="tuple", fields=VIEWS.fields, period="week", owner="Setup team"
    )
    sample.define(install)
    for back in (2, 1):
        sample.add(install, week(back), tuples(VIEWS.fields, dependent(4, 3)), 100_000, seed=back)
    sample.store()
    with made_context(tmp_path, sample=sample) as made:
        yield made


@pytest.fixture
def analyst(context: Context) -> Browser:
    browser = Browser(context)
    browser.log_in(Role.ANALYST)
    return browser


def test_it_is_listed_with_its_reports(analyst: Browser) -> None:
    answer = analyst.get("/")
    assert answer.status_code == 200
    assert "tuples" in answer.text
    assert "100,000" in answer.text
    assert "data-refresh" not in answer.text  # nothing is about to be decoded


def test_it_is_not_decoded_ahead(context: Context) -> None:
    prefetcher = Prefetcher(context)
    assert [prefetcher.due() for _ in range(3)] == [[], [], []]
    assert context.jobs.all() == []


@pytest.mark.parametrize(
    "page",
    [
        *("/trends", "/trends.json", "/trends.csv", "/trends.svg", "/diagnostics"),
        *("/diagnostics.json", "/diagnostics/cells.json", "/diagnostics/bits.json?light=x"),
        *(".json", ".csv", ".parquet", ".py", ".google.zip", "/charts/results.svg"),
    ],
)
def test_pages_of_decoded_collections_name_the_command(
    context: Context, analyst: Browser, page: str
) -> None:
    answer = analyst.get(f"/collections/install{page}")
    assert answer.status_code == 404
    assert "its fields are associated, not decoded" in answer.text
    assert "rappor associate install" in answer.text
    assert context.jobs.all() == []  # no job that could only fail


@pytest.mark.parametrize("page", ["/decode", "/trends", "/diagnostics"])
def test_no_form_starts_a_decode_of_it(context: Context, analyst: Browser, page: str) -> None:
    assert analyst.post(f"/collections/install{page}", {}).status_code == 404
    assert context.jobs.all() == []
