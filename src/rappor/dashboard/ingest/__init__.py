"""What the operator sees of the collector: its figures, watched over time."""
