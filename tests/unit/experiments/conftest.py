"""An experiment is run once for all tests of its file, with two seeds."""

import pytest

from rappor.experiments.experiment import Outcome


@pytest.fixture(scope="module")
def outcome(request: pytest.FixtureRequest) -> Outcome:
    """What the experiment finds that the file imports as `module`."""
    found: Outcome = request.module.module.EXPERIMENT.run(2, lambda _: None)
    return found
