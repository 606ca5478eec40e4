"""Figure 6: Chrome homepages, on labelled stand-ins for the private data (§5.4)."""
