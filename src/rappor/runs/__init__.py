"""`rappor run jobs.toml`: decode many collections and periods, every night, in processes."""

from rappor.runs.jobs_file import JobsFile, read_jobs
from rappor.runs.nightly import RunProgress, RunReport, run_jobs

__all__ = ["JobsFile", "RunProgress", "RunReport", "read_jobs", "run_jobs"]
