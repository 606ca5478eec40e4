"""Reports to counts: a commutative monoid (§4)."""

from rappor.aggregate.counts import Counts
from rappor.aggregate.kernel import count
from rappor.aggregate.pair_counts import PairCounts, count_pairs
from rappor.aggregate.report_files import Aggregated, Malformed, aggregate_files

__all__ = [
    "Aggregated",
    "Counts",
    "Malformed",
    "PairCounts",
    "aggregate_files",
    "count",
    "count_pairs",
]
