"""Every task that the worker knows, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rappor.dashboard.jobs import analysis, decoding
from rappor.dashboard.jobs.job import JobResult, Progress

Task = Callable[[dict[str, Any], Progress], JobResult]

TASKS: dict[str, Task] = {
    "decode": decoding.decode_view,
    "compare": decoding.compare_view,
    "google": decoding.google_files,
    "trend": analysis.trend,
    "diagnose": analysis.diagnose,
    "explain": analysis.explain,
}
