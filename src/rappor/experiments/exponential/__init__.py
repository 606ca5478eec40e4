"""Table 1 and Figure 5: strings with exponentially falling frequencies (§5.2)."""
