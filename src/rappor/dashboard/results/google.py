"""google/rappor's own files of a view: counts.csv, params.csv and map.csv, in one zip (R35)."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rappor import formats
from rappor.csv_cells import map_cell
from rappor.decoding.design import Design
from rappor.decoding.mapfile import map_lines
from rappor.params import FIELDS, Params

if TYPE_CHECKING:
    from rappor.aggregate.counts import Counts
    from rappor.collection import Collection

_WHEN = (1980, 1, 1, 0, 0, 0)  # the same view gives the same bytes


def zipped(counts: Sequence[Counts], looked_for: Any, collection: Collection) -> bytes:
    """The zip file.

    One folder for each (p, q) where there are several; one map serves them all.

    Args:
        counts: what is stored, one for each (p, q).
        looked_for: the design of strings, or the categories or ranges.
        collection: whose they are.
    """
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, each in enumerate(counts, 1):
            folder = f"{number}/" if len(counts) > 1 else ""
            text = io.StringIO()
            each.to_csv(text)
            _add(archive, f"{folder}counts.csv", text.getvalue())
            numbers = {name: getattr(each.params, name) for name in FIELDS}
            _add(archive, f"{folder}params.csv", formats.format_csv(numbers))
        if isinstance(looked_for, Design):
            _add(archive, "map.csv", "".join(map_lines(looked_for)))
        elif looked_for is not None:
            labels = getattr(looked_for, "labels", looked_for)
            _add(archive, "map.csv", "".join(_one_bit_each(labels, collection.params)))
    return packed.getvalue()


def _one_bit_each(labels: Sequence[str], params: Params) -> Iterator[str]:
    """The map of values that have a bit of their own, the same in each cohort."""
    for bit, label in enumerate(labels):
        places = (str(cohort * params.k + bit + 1) for cohort in range(params.m))
        yield f"{map_cell(label)},{','.join(places)}\r\n"


def _add(archive: zipfile.ZipFile, name: str, text: str) -> None:
    about = zipfile.ZipInfo(name, _WHEN)
    about.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(about, text.encode())
