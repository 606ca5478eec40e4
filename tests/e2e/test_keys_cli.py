"""`rappor keys new|list|revoke`: a key is shown once, and no file, list or log has it."""

import json
import os
import signal
import stat
import subprocess
from pathlib import Path

from support.collecting import batch, client_of, collector
from support.command import COMMAND, environment, rappor


def test_a_key_is_shown_once_and_the_file_has_its_digest_only(tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    made = rappor("keys", "new", "app", "--keys", keys, "--collection", "homepage", "--rate", "5e2")
    secret = made.stdout.strip()
    assert (made.returncode, secret[:4]) == (0, "rpk_")
    assert secret not in made.stderr
    assert stat.S_IMODE(keys.stat().st_mode) == 0o600
    listed = rappor("keys", "list", "--keys", keys)
    assert "app" in listed.stdout
    assert "homepage" in listed.stdout
    for text in (keys.read_text(), listed.stdout, listed.stderr):
        assert secret[4:] not in text
    document = json.loads(rappor("keys", "list", "--keys", keys, "--json").stdout)
    assert document["keys"][0]["rate"] == 500
    assert "sha256" not in document["keys"][0]


def test_a_gateway_key_goes_to_a_new_file_of_its_owner(tmp_path: Path) -> None:
    keys, output = tmp_path / "keys.json", tmp_path / "importer.key"
    made = rappor("keys", "new", "importer", "--gateway", "--keys", keys, "--output", output)
    assert (made.returncode, made.stdout) == (0, "")
    assert output.read_text().startswith("rpg_")
    assert stat.S_IMODE(output.stat().st_mode) == 0o600
    again = rappor("keys", "new", "other", "--keys", keys, "--output", output)
    assert (again.returncode, "exists already" in again.stderr) == (3, True)
    assert [key["name"] for key in json.loads(keys.read_text())["keys"]] == ["importer"]
    taken = rappor("keys", "new", "importer", "--keys", keys, "--output", tmp_path / "second.key")
    assert taken.returncode == 3
    assert not (tmp_path / "second.key").exists()


def test_a_key_that_nobody_could_read_is_not_registered(tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as output:
        command = [*COMMAND, "keys", "new", "app", "--keys", str(keys)]
        done = subprocess.run(command, stdout=output, stderr=subprocess.PIPE, env=environment())
    assert done.returncode == 1
    assert b"standard output" in done.stderr
    assert rappor("keys", "new", "app", "--keys", keys).stdout.startswith("rpk_")


def test_a_revoked_key_is_refused_after_a_reload(tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    secret = rappor("keys", "new", "app", "--keys", keys).stdout.strip()
    with (
        collector(tmp_path, "--keys", str(keys)) as process,
        client_of(process, key=secret) as client,
    ):
        assert client.send(batch()).status == 204
        revoked = rappor("keys", "revoke", "app", "--keys", keys)
        assert (revoked.returncode, "SIGHUP" in revoked.stderr) == (0, True)
        process.process.send_signal(signal.SIGHUP)
        process.wait_for_event("reloaded")
        assert client.send(batch()).code == "unauthorized"
        assert secret[4:] not in "".join(process.text)


def test_what_cannot_be_done_is_one_line(tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    for arguments, code, message in (
        (("keys",), 2, "give an action"),
        (("keys", "list", "--keys", keys), 3, "rappor keys new NAME"),
        (("keys", "new", "A b", "--keys", keys), 3, "must match"),
    ):
        done = rappor(*arguments)
        assert (done.returncode, done.stdout) == (code, "")
        assert message in done.stderr
        assert "Traceback" not in done.stderr
    assert not keys.exists()
