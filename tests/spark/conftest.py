"""These tests have an environment of their own, `.venv-spark`: elsewhere they are not collected."""

import os
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any
from unittest.mock import patch

import pytest

from support.spark_cluster import SparkCluster, spark_cluster

collect_ignore_glob = [] if find_spec("pyspark") and find_spec("moto") else ["test_*.py"]


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """A master and two workers."""
    with spark_cluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


@pytest.fixture
def session(cluster: SparkCluster) -> Iterator[Any]:
    """A session on the cluster, which ends with the test."""
    from rappor.aggregate import spark

    with patch.dict(os.environ, cluster.environment()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = spark.session(cluster.url)
        yield made
        made.stop()
