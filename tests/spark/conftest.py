"""These tests have an environment of their own, `.venv-spark`: elsewhere they are not collected."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("pyspark") and find_spec("moto") else ["test_*.py"]
