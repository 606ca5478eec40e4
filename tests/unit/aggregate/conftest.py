"""Every test of counting and parsing that asks for `engine` runs with numba and without."""

import pytest

from rappor.aggregate import _engine


@pytest.fixture(params=["numba", "numpy"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "numpy":
        monkeypatch.setattr(_engine, "load", lambda name: None)
    else:
        for module in ("kernel_numba", "lines_numba"):
            assert _engine.load(module) is not None
    return str(request.param)
