"""Rows of a comparison as files hold them."""

from typing import Any

from rappor.decoding.differences import Difference


def file_row(row: Difference) -> dict[str, Any]:
    """The row as JSON: without the end of an interval where only the side is known."""
    facts = row._asdict()
    if row.side_only:
        facts |= {end: facts[end] or None for end in ("low_95", "high_95")}
    return {**facts, "side_only": row.side_only}
