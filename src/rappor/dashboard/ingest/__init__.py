"""The Ingest page: the collector's figures, the disk, jobs, accounts and the audit log."""
