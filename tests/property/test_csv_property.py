"""CSV: any text comes back from every reader, and no piece of a cell begins like a formula."""

import csv
import io
import re
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rappor import Params, csv_cells
from rappor.csv_cells import FORMULA_SIGNS, original, text_cell
from rappor.dashboard.results.downloads import zipped
from rappor.dashboard.tables import csv_response
from rappor.decoding.candidate_files import from_csv, read_strings
from rappor.decoding.design import build_design
from rappor.decoding.exports import csv_lines
from rappor.decoding.mapfile import read_map, write_map
from rappor.experiments.experiment import Table
from rappor.experiments.reproduce import _write_table
from rappor.simulate.judge import read_truth
from rappor.simulate.output_files import write_candidates, write_truth
from rappor.simulate.population_files import _rows

DANGEROUS = "=+-@\t\r\n,;\"' x|\ufeff\uff1d"
texts = st.text(
    st.one_of(st.sampled_from(DANGEROUS), st.characters(exclude_categories=["Cs"])), max_size=20
)
PARAMS = Params(k=8, h=2, m=2, f=0.5, p=0.5, q=0.75)
PAYLOADS = [
    "=cmd|' /C calc'!A0",
    "x;=cmd|' /C calc'!A0",
    "a,=1+1",
    'a","=1+1',
    "a\t@SUM(1)",
    "a\n-1",
    "'=1",
    "''+1",
    "\uff1d1",
]


def pieces(file: str) -> list[str]:
    """What any reader could take for a cell: cut at every separator and quote."""
    found = [each for each in re.split(r'[,;\t\r\n"]', file) if each]
    return [each for each in found if each != "-1.5"]


def harmless(file: str) -> bool:
    return not any(each[0] in FORMULA_SIGNS for each in pieces(file))


@given(texts)
def test_any_text_comes_back_from_a_cell_that_cannot_run(text: str) -> None:
    cell = text_cell(text)
    ((read,),) = csv.reader(io.StringIO(cell, newline=""), strict=True)
    assert original(read) == text
    assert cell[0] == cell[-1] == '"'
    assert harmless(cell)
    assert not read or read[0] not in FORMULA_SIGNS


@given(texts)
def test_texts_that_were_never_escaped_are_left_alone_but_for_one_apostrophe(text: str) -> None:
    assert original(csv_cells._RUNNABLE.sub("'", text)) == text
    if "'" not in text:
        assert original(text) == text


def writable(given: list[str]) -> list[str]:
    """Candidates: texts that are not blank."""
    return [each for each in dict.fromkeys(given) if each and not each.isspace()] or ["a"]


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(texts, min_size=1, max_size=5))
def test_every_reader_undoes_the_writer(tmp_path: Path, given: list[str]) -> None:
    strings = writable([*given, *PAYLOADS])
    listed, mapped, truth = (tmp_path / name for name in ("c.csv", "map.csv", "truth.csv"))
    write_candidates(listed, strings)
    assert read_strings(listed)[0] == strings
    design = build_design(strings, PARAMS, "google")
    write_map(design, mapped)
    assert read_map(mapped, PARAMS).strings.strings == design.strings.strings
    counts = {text: number for number, text in enumerate(strings)}
    write_truth(truth, counts)
    assert read_truth(truth) == counts
    page = csv_response(("string",), [(each,) for each in strings], "x.csv").body
    assert from_csv(bytes(page).decode(), "x")[0] == strings
    results = "".join(csv_lines({"string": strings, "estimate": [-1.5] * len(strings)}))
    assert from_csv(results, "x")[0] == strings
    held = "string,frequency\n" + "".join(csv_cells.line((each, 1)) for each in strings)
    assert [text for text, _ in _rows(held, "x")] == strings
    with zipfile.ZipFile(io.BytesIO(zipped([], design, None))) as archive:  # type: ignore[arg-type]
        in_zip = archive.read("map.csv").decode()
    _write_table(Table("table", ("string",), [(each,) for each in strings], ""), tmp_path)
    files = [path.read_bytes().decode() for path in (listed, mapped, truth)]
    files += [bytes(page).decode(), results, in_zip, (tmp_path / "table.csv").read_bytes().decode()]
    for file in files:
        assert harmless(file)


def test_numbers_stay_numbers() -> None:
    import numpy as np

    values = [-1.5, -3, np.float64(-2.5), np.int64(-7), True, None, float("nan")]
    assert csv_cells.line(values) == "-1.5,-3,-2.5,-7,true,,\n"
