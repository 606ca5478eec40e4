"""Jobs: long work in another process, which can be watched and cancelled."""

from rappor.dashboard.jobs.queue import Job, JobResult, Jobs, Progress

__all__ = ["Job", "JobResult", "Jobs", "Progress"]
