"""The dashboard's own state: dashboard.sqlite beside the store, which it never writes to."""

from rappor.dashboard.state.accounts import Account
from rappor.dashboard.state.saved import CandidateList, CandidateVersion, SavedJob, SavedResult
from rappor.dashboard.state.state import DashboardState

__all__ = [
    "Account",
    "CandidateList",
    "CandidateVersion",
    "DashboardState",
    "SavedJob",
    "SavedResult",
]
