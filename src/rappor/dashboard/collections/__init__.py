"""The Collections page: the list of all collections."""
