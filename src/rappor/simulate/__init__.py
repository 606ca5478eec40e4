"""Simulated populations and their counts: numpy's generators and seeds are fine here."""

from rappor.simulate.draw import Simulated, counts, simulate

__all__ = ["Simulated", "counts", "simulate"]
