"""Figure 7: picking reports with both bits of a string set (§6)."""
