"""The Diagnostics page: checks of a fit and the heat map of cohorts and bits."""
