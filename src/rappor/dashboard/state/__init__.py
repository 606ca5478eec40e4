"""The dashboard's own state, in dashboard.sqlite; the dashboard never writes to the store."""

from rappor.dashboard.state.accounts import Account
from rappor.dashboard.state.saved import CandidateVersion, SavedJob, SavedResult
from rappor.dashboard.state.state import DashboardState
from rappor.decoding.saved_candidates import CandidateList

__all__ = [
    "Account",
    "CandidateList",
    "CandidateVersion",
    "DashboardState",
    "SavedJob",
    "SavedResult",
]

State = DashboardState  # the name in Python code that pages of earlier versions showed
