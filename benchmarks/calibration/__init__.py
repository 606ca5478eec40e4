"""Calibration of the decoder: are its stated error rates true? See docs/calibration.md."""
