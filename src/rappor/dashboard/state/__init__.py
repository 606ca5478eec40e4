"""The dashboard's own state: dashboard.sqlite beside the store, which it never writes to."""

from rappor.dashboard.state.records import (
    Account,
    CandidateList,
    CandidateVersion,
    SavedJob,
    SavedResult,
)
from rappor.dashboard.state.state import DashboardState

__all__ = [
    "Account",
    "CandidateList",
    "CandidateVersion",
    "DashboardState",
    "SavedJob",
    "SavedResult",
]
