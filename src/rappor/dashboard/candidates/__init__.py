"""The Candidates page: lists of strings, uploaded, tried and saved."""
