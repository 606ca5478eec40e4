"""The Associations page: two fields of a tuple, their joint table, and whether they depend."""
