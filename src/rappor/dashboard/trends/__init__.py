"""The Trends page: shares by period."""
