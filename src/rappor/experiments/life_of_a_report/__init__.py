"""Figure 1: the life of a report, v -> B -> B' -> S (§2)."""
