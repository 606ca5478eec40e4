"""Reports to counts: a commutative monoid (§4, R20, R35)."""

from rappor.aggregate.counts import Counts
from rappor.aggregate.files import Aggregated, Malformed, aggregate_files
from rappor.aggregate.kernel import count

__all__ = ["Aggregated", "Counts", "Malformed", "aggregate_files", "count"]
