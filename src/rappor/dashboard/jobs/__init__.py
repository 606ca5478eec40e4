"""Long work in a process of its own: started, watched, cancelled, and kept when it is done."""

from rappor.dashboard.jobs.job import Job, Progress, Result
from rappor.dashboard.jobs.jobs import Jobs

__all__ = ["Job", "Jobs", "Progress", "Result"]
