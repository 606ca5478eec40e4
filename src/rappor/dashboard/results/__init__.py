"""The Results page: decoded strings, categories or numbers with their intervals."""
