"""From counts back to strings and frequencies (paper §4)."""
