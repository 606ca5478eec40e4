"""The store in one SQLite file: WAL, synchronous=FULL, one writer."""
