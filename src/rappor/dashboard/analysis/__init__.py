"""View models of the Trends, Diagnostics and Candidates pages: plain data in, plain data out."""
