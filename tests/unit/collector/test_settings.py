"""Settings: what is wrong is named."""

import pytest

from rappor.collector.settings import CollectorSettings
from rappor.errors import ParamsError


@pytest.mark.parametrize(
    "wrong",
    [
        {"port": 65536},
        {"port": "80"},
        {"rate": -1.0},
        {"rate": float("nan")},
        {"queue_batches": 0},
        {"queue_bytes": 10},
        {"tls_cert": "a"},
        {"log_level": "loud"},
    ],
    ids=str,
)
def test_a_wrong_setting_is_named(wrong: dict[str, object]) -> None:
    (name,) = wrong
    with pytest.raises(ParamsError, match=name):
        CollectorSettings(data="d", collections="c", **wrong)
