"""google/rappor's regression grid, simulated and decoded here."""
