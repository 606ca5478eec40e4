"""What print(decoded) and print(compared) say: the words of the command, and a short repr."""

import contextlib
import io
import sys
from pathlib import Path

import pytest

import rappor
from rappor.cli.main import main
from rappor.decoding.result_table import CUT, MAX_ROWS

PARAMS = rappor.Params(32, 2, 8, 0.25, 0.35, 0.65)
CATEGORIES = rappor.Params(3, 1, 1, 0.0, 0.25, 0.75)
NAMES = ["a.example", "b.example", "c.example"]


class Terminal(io.StringIO):
    """Standard output with an encoding."""

    def __init__(self, encoding: str) -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:
        return self._encoding


def printed(something: object, encoding: str = "utf-8") -> str:
    with contextlib.redirect_stdout(Terminal(encoding)) as out:
        print(something)
    return out.getvalue()


def of_command(*arguments: object) -> tuple[str, str]:
    with (
        contextlib.redirect_stdout(Terminal("utf-8")) as out,
        contextlib.redirect_stderr(Terminal("utf-8")) as notes,
    ):
        assert main(list(map(str, arguments))) == 0
    return out.getvalue(), notes.getvalue()


def strings(seed: int, first: float = 3.0) -> rappor.Counts:
    return rappor.simulate.counts({NAMES[0]: first, NAMES[1]: 2}, PARAMS, 30_000, seed=seed)


@pytest.fixture(scope="module")
def decoded() -> rappor.Decoded:
    return rappor.decode(strings(3), NAMES, dialect="rappor-v1")


def test_print_gives_the_table_the_summary_and_the_notes_of_the_command(tmp_path: Path) -> None:
    strings(3).to_npz(tmp_path / "counts.npz")
    listed = tmp_path / "names.txt"
    listed.write_text("\n".join(NAMES))
    out, notes = of_command("decode", "--counts", tmp_path / "counts.npz", "--candidates", listed)
    counts = rappor.Counts.from_npz(tmp_path / "counts.npz")
    assert printed(rappor.decode(counts, listed)) == out + notes


def test_print_of_a_comparison_gives_what_the_command_prints(tmp_path: Path) -> None:
    old, new = strings(3), strings(4, first=1.0)
    for name, counts in (("old", old), ("new", new)):
        counts.to_npz(tmp_path / f"{name}.npz")
    listed = tmp_path / "names.txt"
    listed.write_text("\n".join(NAMES))
    files = (tmp_path / "old.npz", tmp_path / "new.npz")
    out, notes = of_command("compare", *files, "--candidates", listed)
    old, new = map(rappor.Counts.from_npz, files)
    found = rappor.compare(new, old, listed, names=("new.npz", "old.npz"))
    assert found.different
    assert printed(found) == out + notes


def test_a_repr_is_one_short_line(decoded: rappor.Decoded) -> None:
    assert repr(decoded) == "<Decoded 30,000 reports, 3 candidates: 2 detected>"
    found = rappor.compare(strings(3), strings(4), NAMES, dialect="rappor-v1")
    assert repr(found).startswith("<Compared 0 of 3 candidates differ")
    assert "\n" not in repr(found)


def test_too_few_reports_are_said_once_and_first() -> None:
    counts = rappor.Counts(CATEGORIES, [400], [[150, 120, 110]], kind="category")
    text = printed(rappor.decode(counts, ["x", "y", "z"]))
    assert text.startswith("Too few reports")
    assert text.count("Too few reports") == 1


def test_more_rows_than_are_shown_are_named_with_where_they_are() -> None:
    size = MAX_ROWS + 3
    params = rappor.Params(size, 1, 1, 0.0, 0.25, 0.75)
    counts = rappor.Counts(params, [10_000], [[3_000] * size], kind="category")
    text = printed(rappor.decode(counts, [f"c{place:02}" for place in range(size)]))
    assert "… and 3 more rows (`.rows` has every one)" in text


LONG = f"https://long.example/{'x' * 200}"


def long_string() -> rappor.Decoded:
    counts = rappor.simulate.counts({LONG: 1.0}, PARAMS, 30_000, seed=5)
    return rappor.decode(counts, [LONG], dialect="rappor-v1")


def test_a_pipe_or_a_file_gets_strings_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    text = printed(long_string())
    assert LONG in text
    assert CUT not in text


def test_a_terminal_gets_strings_cut_to_its_width_and_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    head, row, cut, *_ = printed(long_string()).splitlines()
    assert len(row) == len(head) == 100
    assert row.startswith("https://long.example/x")
    assert "x…  " in row
    assert cut == CUT


def test_an_old_terminal_gets_characters_that_it_can_show(decoded: rappor.Decoded) -> None:
    assert printed(decoded, "ascii").isascii()
    assert "chi" in printed(decoded, "ascii")


def test_a_program_without_standard_output_can_make_the_text(
    decoded: rappor.Decoded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert "χ²" in str(decoded)
