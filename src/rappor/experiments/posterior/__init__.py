"""Figure 8: how probable v is, given its two bits in one report (§6)."""
