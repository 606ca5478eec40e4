"""Figure 3: how many strings a number of reports can reveal (§4.2 and appendix)."""
