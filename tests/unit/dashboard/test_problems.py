"""What went wrong, as a page says it: no folder, no trace, and no page that breaks."""

import os
from pathlib import Path

from rappor.dashboard.auth.roles import Role
from rappor.dashboard.catalogue import Catalogue
from rappor.dashboard.context import Context
from rappor.dashboard.problems import without_paths
from rappor.dashboard.settings import DashboardSettings
from support.dashboard_context import entered


def test_no_error_tells_where_the_folders_are(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for data in (tmp_path / "data", Path("data")):
        settings = DashboardSettings(data, tmp_path / "collections")
        for text in (
            f"{data}/store.sqlite: damaged",
            f"{tmp_path}/data/store.sqlite: damaged",
            f"file {tmp_path}/collections/x.toml is none",
        ):
            said = without_paths(text, settings)
            assert str(tmp_path) not in said
            assert said.endswith(("store.sqlite: damaged", "x.toml is none"))
            assert not said.startswith(("/", "data"))


def test_a_definition_that_breaks_its_reader_breaks_no_page(tmp_path: Path) -> None:
    (tmp_path / "collections").mkdir()
    (tmp_path / "collections" / "deep.toml").write_text("a = " + "[" * 50_000)
    (tmp_path / "collections" / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    catalogue = Catalogue(tmp_path, tmp_path / "collections")
    assert catalogue.collections() == []
    assert [each.file for each in catalogue.unreadable()] == ["bytes.toml", "deep.toml"]


def test_a_log_that_vanishes_while_its_size_is_asked_is_no_fault(
    context: Context, monkeypatch
) -> None:
    real = Path.stat

    def vanished(self: Path, **more: bool) -> os.stat_result:
        if self.name.endswith("-wal"):
            raise FileNotFoundError(2, "No such file", str(self))
        return real(self, **more)

    browser = entered(context, Role.OPERATOR)
    monkeypatch.setattr(Path, "stat", vanished)
    assert browser.get("/ingest.json").status_code == 200
