"""SIGHUP: collections and keys are read again, together or not at all, and nobody is cut off."""

import signal
from pathlib import Path

from rappor.collection import Collection
from rappor.collector.keys import new_key
from support.collecting import (
    PARAMS,
    Process,
    batch,
    client_of,
    collect_command,
    collector,
    write_collections,
)
from support.waiting import wait_for


def test_collections_are_read_again_on_sighup(tmp_path: Path) -> None:
    with collector(tmp_path) as process, client_of(process) as client:
        assert client.send(batch(collection="fresh")).code == "unknown-collection"
        write_collections(tmp_path, Collection("fresh", 1, PARAMS))
        process.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "reloaded" in process.events())
        assert client.send(batch(collection="fresh")).status == 204
        (tmp_path / "collections" / "broken.toml").write_text("name = 3")
        process.process.send_signal(signal.SIGHUP)
        assert "broken.toml" in str(process.wait_for_event("reload-failed"))
        assert client.send(batch(collection="fresh")).status == 204
        (tmp_path / "collections" / "broken.toml").write_text("name = [")  # no TOML at all
        process.process.send_signal(signal.SIGHUP)
        assert "broken.toml" in str(process.wait_for_event("reload-failed", 2))


def test_keys_and_collections_are_read_again_together_or_not_at_all(tmp_path: Path) -> None:
    """A reload that fails leaves the old keys in place too, as the guide says."""
    folder, keys = write_collections(tmp_path), tmp_path / "keys.json"
    given = "Bearer " + new_key(keys, "app")
    with collector(tmp_path, "--keys", str(keys)) as process, client_of(process) as client:
        keys.write_text('{"keys": []}')
        changed = Collection("homepage", 1, PARAMS.__class__(16, 2, 4, 0.25, 0.5, 0.75))
        (folder / "homepage-1.toml").write_text(changed.to_toml())
        process.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "reload-failed" in process.events())
        assert client.send(batch(), authorization=given).status == 204


def test_an_application_gets_its_new_rate_with_a_reload(tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    given = "Bearer " + new_key(keys, "app", rate=0.001)
    with collector(tmp_path, "--keys", str(keys)) as process, client_of(process) as client:
        assert client.send(batch(), authorization=given).status == 204
        assert client.send(batch(), authorization=given).code == "rate-limited"
        keys.write_text(keys.read_text().replace('"rate": 0.001', '"rate": 1000.0'))
        process.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "reloaded" in process.events())
        assert client.send(batch(), authorization=given).status == 204


def test_a_reload_during_the_start_does_not_end_the_process(tmp_path: Path) -> None:
    """`systemctl reload` right after a start; systemd takes death by SIGHUP for a clean end."""
    process = Process(collect_command(tmp_path))
    try:
        wait_for((tmp_path / "data" / "store.lock").exists)  # at work, and not listening yet
        process.process.send_signal(signal.SIGHUP)
        process.wait_until_listening()
        with client_of(process) as client:
            assert client.send(batch()).status == 204
    finally:
        process.close()
