"""Figure 4: the shape of a normal distribution from three numbers of reports (§5.1)."""
