"""The tests of the application: how many reports leave, and that none leaves without consent."""

from pathlib import Path

import pytest

import notes

COLLECTIONS = sorted((notes.HERE / "collections").glob("*.toml"))


@pytest.fixture
def collector(rappor_collector, monkeypatch):
    running = rappor_collector(*COLLECTIONS)
    monkeypatch.setattr(notes, "UPLOAD_TO", running.url)
    monkeypatch.setattr(notes, "SECONDS_AT_THE_END", 60)
    monkeypatch.setenv("EDITOR", "/usr/bin/vim")
    return running


def run(home: Path, *arguments: str) -> None:
    notes.main(["--home", str(home), *arguments])


def test_notes_are_kept(tmp_path, collector, capsys):
    run(tmp_path, "list")
    run(tmp_path, "add", "Buy milk")
    run(tmp_path, "list")
    assert capsys.readouterr().out == "no notes yet\nBuy milk\n"


def test_nothing_is_sent_before_the_person_agrees(tmp_path, collector):
    run(tmp_path, "theme", "dark")
    assert collector.batches == ()
    assert not (tmp_path / "statistics" / "secret").exists()


def test_theme_and_editor_are_reported_once_a_day(tmp_path, collector, capsys):
    run(tmp_path, "privacy", "--on")
    for _ in range(3):
        run(tmp_path, "list")
    assert (collector.count("theme"), collector.count("editor")) == (1, 1)
    capsys.readouterr()
    run(tmp_path, "privacy")
    shown = capsys.readouterr().out
    assert "theme version 1" in shown
    assert "vim" not in shown


def test_nothing_is_sent_after_opting_out(tmp_path, collector, capsys):
    run(tmp_path, "privacy", "--on")
    run(tmp_path, "privacy", "--off")
    run(tmp_path, "theme", "light")
    assert collector.batches == ()
    assert "statistics are off" in capsys.readouterr().out


def test_a_person_who_is_not_tracked_is_told_why(tmp_path, collector, capsys, monkeypatch):
    monkeypatch.setenv("DO_NOT_TRACK", "1")
    run(tmp_path, "privacy", "--on")
    assert "statistics stay off: " in capsys.readouterr().out
    monkeypatch.delenv("DO_NOT_TRACK")
    run(tmp_path, "list")
    assert collector.batches == ()


def test_forgetting_says_what_it_costs(tmp_path, collector, capsys):
    run(tmp_path, "privacy", "--on")
    run(tmp_path, "list")
    run(tmp_path, "privacy", "--forget")
    assert "ε" in capsys.readouterr().out
    assert not (tmp_path / "statistics" / "secret").exists()
