"""The blocks of docs/spark.md and docs/scaling.md that need Spark or Dask."""

import os
import sys
from contextlib import closing
from pathlib import Path
from unittest.mock import patch

import pytest

from support.code_blocks import Block, Session, blocks
from support.spark_cluster import SparkCluster

pytestmark = pytest.mark.long
DOCS = Path(__file__).parents[2] / "docs"
HERE = "tests/spark/test_documents.py"


def mine(page: str) -> list[Block]:
    """The blocks that are left to this test, and what prepares them, in order."""
    found = [
        each for each in blocks(DOCS / page) if each.hidden or each.marks.get("run by") == HERE
    ]
    assert sum(not each.hidden for each in found) >= 1
    return found


@pytest.mark.parametrize("page", ["spark.md", "scaling.md"])
@pytest.mark.filterwarnings("ignore")
def test_a_page_does_what_it_says(cluster: SparkCluster, tmp_path: Path, page: str) -> None:
    bin_folder = Path(sys.executable).parent
    path = f"{bin_folder}{os.pathsep}{os.environ['PATH']}"
    changed = patch.dict(os.environ, cluster.environment() | {"PATH": path})
    with closing(Session(tmp_path)) as session, changed:
        for block in mine(page):
            session.run(block)
        if "session" in session.names:
            session.names["session"].stop()  # type: ignore[attr-defined]
