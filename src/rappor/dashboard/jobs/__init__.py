"""Long work in a process of its own: started, watched, cancelled, and kept when it is done."""

from rappor.dashboard.jobs.job import Job, JobResult, Progress
from rappor.dashboard.jobs.queue import Jobs

__all__ = ["Job", "JobResult", "Jobs", "Progress"]
