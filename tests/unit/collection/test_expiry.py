"""The end of a collection: announced two weeks ahead, in words that are true."""

import datetime

import pytest

from rappor.collection import Collection, ExpiryState, announcement, expiring, expiry_state
from rappor.collection.expiry import NOTICE_DAYS, at_expiry
from rappor.errors import ParamsError
from rappor.params import Params

TODAY = datetime.date(2026, 11, 16)


def ending(days: int | None, name: str = "homepage", **fields: str) -> Collection:
    expires = None if days is None else TODAY + datetime.timedelta(days=days)
    return Collection(name, 1, Params.preset("windows"), expires=expires, **fields)  # type: ignore[arg-type]


def test_the_end_is_announced_two_weeks_ahead_and_not_earlier() -> None:
    assert NOTICE_DAYS == 14
    states = {days: expiry_state(ending(days), TODAY) for days in (None, 15, 14, 1, 0, -1)}
    assert states == {
        None: ExpiryState.ACTIVE,
        15: ExpiryState.ACTIVE,
        14: ExpiryState.EXPIRING,
        1: ExpiryState.EXPIRING,
        0: ExpiryState.EXPIRED,
        -1: ExpiryState.EXPIRED,
    }


def test_the_next_end_comes_first_and_collections_that_have_ended_are_left_out() -> None:
    every = [
        ending(9, "late"),
        ending(3, "b"),
        ending(3, "a"),
        ending(0, "gone"),
        ending(99, "far"),
    ]
    assert [item.name for item in expiring(every, TODAY)] == ["a", "b", "late"]


def test_an_announcement_says_what_happens_to_the_data() -> None:
    text = announcement(ending(3), TODAY)
    assert text.startswith("homepage v1 expires on 2026-11-19, in 3 days: ")
    assert text.endswith("all its counts and reports are deleted")
    assert at_expiry(ending(3, on_expiry="keep-counts")).endswith("its counts stay")


def test_only_the_two_ends_that_retention_knows_can_be_written() -> None:
    with pytest.raises(ParamsError, match="on_expiry must be one of delete, keep-counts"):
        ending(3, on_expiry="archive")


def test_a_definition_that_does_not_use_the_field_keeps_its_text() -> None:
    assert "on_expiry" not in ending(3).to_toml()
    kept = ending(3, on_expiry="keep-counts")
    assert Collection.from_toml(kept.to_toml()) == kept
