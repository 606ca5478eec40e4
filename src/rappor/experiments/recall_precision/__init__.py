"""Figure 2: recall and precision by filter size k, hashes h and cohorts m (§4.1)."""
