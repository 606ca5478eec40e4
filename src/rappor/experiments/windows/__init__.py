"""Table 2: Windows process names, on a labelled stand-in for the private data (§5.3)."""
