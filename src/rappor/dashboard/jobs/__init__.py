"""Long work in a process of its own: started, watched, cancelled, and kept when it is done."""

from rappor.dashboard.jobs.queue import Job, JobResult, Jobs, Progress

__all__ = ["Job", "JobResult", "Jobs", "Progress"]
