"""The people of the demo, what they are asked, and what they send."""

import datetime
from collections import Counter
from pathlib import Path

import pytest

from rappor.collection import Collection, Registry
from rappor.collection.lint import lint_all
from rappor.demo.crowd import Task, encode
from rappor.demo.definitions import (
    CANDIDATES,
    HOMEPAGE,
    INSTALL,
    INSTALL_CANDIDATES,
    START,
    THEME,
    definitions,
    write,
)
from rappor.demo.population import (
    CHANNELS,
    COUNTRIES,
    DAYS,
    HIJACKED,
    HIJACKED_CHANNELS,
    HIJACKER,
    THEMES,
    UNLISTED,
    DemoPopulation,
    Person,
    candidates,
    known_sites,
    named,
)

TODAY = datetime.date(2026, 11, 16)
MANY = DemoPopulation(30_000, seed=3)


def people(population: DemoPopulation) -> list[Person]:
    return [person for n in range(population.chunks) for person in population.chunk(n)]


@pytest.fixture(scope="module")
def collections() -> dict[str, Collection]:
    return {each.name: each for each in definitions(90_000, TODAY)}


def test_a_seed_gives_the_same_people_and_another_one_others() -> None:
    first, again, other = (people(DemoPopulation(2000, seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert DemoPopulation(2000, 1).sites != DemoPopulation(2000, 2).sites


def test_more_people_leave_the_first_ones_as_they_are() -> None:
    assert people(DemoPopulation(1500, 1)) == people(DemoPopulation(4000, 1))[:1500]


def test_nobody_is_hijacked_before_the_fourth_day_and_most_in_one_country() -> None:
    crowd = people(MANY)
    for country, shares in HIJACKED.items():
        mine = [person for person in crowd if person.country == country]
        assert len(mine) / len(crowd) == pytest.approx(COUNTRIES[country], abs=0.02)
        for day, share in enumerate(shares):
            held = sum(person.homepage_on(day) == HIJACKER for person in mine) / len(mine)
            assert held == pytest.approx(share, abs=0.012)
    assert HIJACKED["NZ"][2] == 0
    assert HIJACKED["NZ"][-1] > 3 * HIJACKED["AU"][-1]


def test_hijacked_browsers_come_with_another_channel() -> None:
    crowd = people(MANY)
    for is_hijacked, shares in ((True, HIJACKED_CHANNELS), (False, CHANNELS)):
        held = Counter(each.channel for each in crowd if (each.hijacked < DAYS) == is_hijacked)
        for channel, share in shares.items():
            assert held[channel] / held.total() == pytest.approx(share, abs=0.04)


def test_a_homepage_is_on_the_list_or_one_persons_own() -> None:
    pages = Counter(person.homepage for person in people(MANY))
    own = {page for page in pages if named(page) == UNLISTED}
    assert set(pages) - own == set(MANY.sites)
    assert {pages[page] for page in own} == {1}
    assert len(own) / MANY.people == pytest.approx(0.12, abs=0.01)


def test_most_candidates_are_held_by_nobody() -> None:
    listed = set(candidates())
    assert set(MANY.sites) < listed
    assert len(listed - set(MANY.sites) - {HIJACKER}) == 179


def test_reports_are_about_as_many_as_asked_for() -> None:
    for asked in (1_000, 12_345, 10**6):
        assert DemoPopulation.for_reports(asked, 1).reports == pytest.approx(asked, rel=0.03)


def test_devices_are_people_of_their_own_who_are_asked_everything() -> None:
    devices = list(MANY.devices(10))
    assert len(devices) == 10
    assert all(person.theme in THEMES and person.start is not None for person in devices)
    others = {(*person[:3], person.start) for person in people(MANY)}
    assert not {(*person[:3], person.start) for person in devices} & others


def test_lint_only_says_that_the_homepage_is_asked_for_twice() -> None:
    (found,) = lint_all(definitions(90_000, TODAY), TODAY)
    assert (found.code, found.severity) == ("field-asked-twice", "warning")
    assert found.collection == "install v1"


def test_files_of_the_collections_read_back(tmp_path: Path) -> None:
    made = definitions(90_000, TODAY)
    folder = write(made, tmp_path / "collections", seed=1)
    assert Registry.open(folder).newest() == tuple(sorted(made, key=lambda each: each.name))
    assert (folder / CANDIDATES).read_text().splitlines() == list(candidates())
    assert (folder / INSTALL_CANDIDATES).read_text().splitlines() == list(known_sites(1))


def test_everyone_reports_once_a_day_and_says_the_truth_to_nobody_else(
    collections: dict[str, Collection],
) -> None:
    crowd = DemoPopulation(60, seed=1)
    made = encode(crowd.chunk(0), collections)
    assert sum(len(reports) for reports, _ in made.values()) == crowd.reports
    for (name, _, _), (reports, values) in made.items():
        params = collections[name].params
        assert len(reports) == len(values)
        assert all(0 <= each.cohort < params.m and each.bits < 1 << params.k for each in reports)
    per_day = Counter(dict.fromkeys(range(DAYS), 0))
    for (name, day, _), (reports, _) in made.items():
        per_day[day] += len(reports) if name == HOMEPAGE else 0
    assert set(per_day.values()) == {60}
    together = {day: len(each) for (name, day, _), (each, _) in made.items() if name == INSTALL}
    assert set(together) == {DAYS - 1}  # once, on the last day
    held = Counter(
        value for (name, _, _), (_, each) in made.items() if name == THEME for value in each
    )
    assert set(held) <= set(THEMES)
    assert any(name == START for name, _, _ in made)


def test_a_person_stays_in_one_cohort_and_the_noise_has_no_seed(
    collections: dict[str, Collection],
) -> None:
    person = Person("NZ", "fern-news.example", DAYS, "store", None, None)
    runs = [
        {key: cell for key, cell in encode([person], collections).items() if key[0] == HOMEPAGE}
        for _ in range(40)
    ]
    for made in runs:
        assert len({reports[0].cohort for reports, _ in made.values()}) == 1
        assert len({reports[0].bits for reports, _ in made.values()}) == DAYS
    # 40 secrets from the system: all of one cohort of eight would be a chance of 8 ** -39.
    assert len({made[HOMEPAGE, 0, "NZ"][0][0].cohort for made in runs}) > 1


def test_a_task_survives_its_way_to_another_process() -> None:
    task = Task(10, 1, 0, 2, "http://127.0.0.1:1", ("a", "b"), ("2026-11-16",), "key")
    read = Task.from_json(task.to_json())
    assert (read.people, tuple(read.definitions), read.url) == (10, ("a", "b"), task.url)
