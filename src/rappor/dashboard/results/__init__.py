"""What the Results page shows: kept tables, their rows, charts, files and words."""
