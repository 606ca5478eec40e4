"""The report lake: kept reports sealed into Parquet files, enough to count again from nothing."""

from rappor.aggregate.lake.counting import LakeCounts, count_lake
from rappor.aggregate.lake.place import LakePlace
from rappor.aggregate.lake.sealing import Sealed, seal
from rappor.aggregate.lake.upkeep import Compacted, Verified, compact, verify

__all__ = [
    "Compacted",
    "LakeCounts",
    "LakePlace",
    "Sealed",
    "Verified",
    "compact",
    "count_lake",
    "seal",
    "verify",
]
