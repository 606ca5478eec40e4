"""Ingest keys: found by their digest, read from a file or refused."""

from pathlib import Path

import pytest

from rappor.collector.keys import digest_of, list_keys, new_key, read_keys, revoke_key
from rappor.errors import ParamsError


def test_keys_are_found_by_their_digest_and_nothing_else_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    keys = {name: new_key(file, name) for name in ("one", "two")}
    found = read_keys(file)
    assert {found[digest_of(key.encode())].name for key in keys.values()} == {"one", "two"}
    text = file.read_text()
    assert not [key for key in keys.values() if key in text or key[4:] in text]
    assert list(tmp_path.iterdir()) == [file]  # no draft is left


def test_a_key_has_144_bits_of_the_systems_randomness(tmp_path: Path) -> None:
    made = {new_key(tmp_path / "keys.json", f"k{i}") for i in range(20)}
    assert len(made) == 20
    assert {len(key) for key in made} == {len("rpk_") + 24}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"keys": {}}',
        '{"keys": [3]}',
        '{"keys": [{"name": "a"}]}',
        '{"keys": [{"name": "A b", "sha256": "' + 64 * "0" + '"}]}',
        '{"keys": [{"name": "a", "sha256": "' + 64 * "0" + '", "rate": -1}]}',
        '{"keys": [{"name": "a", "sha256": "' + 64 * "0" + '", "rate": NaN}]}',
        '{"keys": [{"name": "a", "sha256": "' + 64 * "0" + '", "more": 1}]}',
        '{"keys": [{"name": "a", "sha256": "' + 64 * "0" + '", "collections": "b"}]}',
        '{"keys": [{"name": "a", "sha256": "' + 64 * "0" + '", "revoked": true}]}',
        '{"keys": [{"name": "a", "sha256": "' + 64 * "0" + '", "created": "soon"}]}',
    ],
)
def test_a_bad_file_of_keys_is_refused_by_name(tmp_path: Path, text: str) -> None:
    file = tmp_path / "keys.json"
    file.write_text(text)
    with pytest.raises(ParamsError, match=r"keys\.json"):
        read_keys(file)


def test_a_missing_file_of_keys_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(ParamsError, match="rappor keys new NAME"):
        read_keys(tmp_path / "none.json")


def test_a_revoked_key_opens_nothing_and_its_name_is_not_used_again(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    secret, other = new_key(file, "app"), new_key(file, "other")
    assert revoke_key(file, "app").revoked
    assert digest_of(secret.encode()) not in read_keys(file)
    assert digest_of(other.encode()) in read_keys(file)
    assert [(key.name, bool(key.revoked)) for key in list_keys(file)] == [
        ("app", True),
        ("other", False),
    ]
    with pytest.raises(ParamsError, match="was a key app, revoked on"):
        new_key(file, "app")
    with pytest.raises(ParamsError, match="was revoked on"):
        revoke_key(file, "app")
    with pytest.raises(ParamsError, match="it has: app, other"):
        revoke_key(file, "none")


def test_a_file_from_before_the_days_were_kept_is_read(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_text('{"keys": [{"name": "a", "sha256": "' + 64 * "0" + '"}]}')
    assert [(key.created, key.revoked) for key in list_keys(file)] == [("", "")]


def test_a_key_that_cannot_be_saved_leaves_no_digest(tmp_path: Path) -> None:
    def fail(_: str) -> None:
        raise OSError("no room")

    file = tmp_path / "keys.json"
    new_key(file, "app")
    before = file.read_bytes()
    with pytest.raises(OSError, match="no room"):
        new_key(file, "other", save=fail)
    assert file.read_bytes() == before
