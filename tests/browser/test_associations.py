"""Associations in a real browser: how the page looks, and that controls change it."""

import pytest

from rappor.dashboard.auth.roles import Role

pytestmark = pytest.mark.long

PAGE = "/collections/install/associations"

# Pairs of texts of the joint chart that touch, and texts that end outside of it.
OVERLAPS = """() => {
  const chart = document.querySelector("#joint svg").getBoundingClientRect();
  const texts = [...document.querySelectorAll("#joint svg text")]
    .filter((text) => text.textContent.trim() && text.getAttribute("opacity") !== "0")
    .map((text) => [text.textContent, text.getBoundingClientRect()]);
  const cut = texts.filter(([, box]) => box.left < chart.left - 1 || box.right > chart.right + 1);
  const touch = texts.flatMap(([text, a], place) => texts.slice(place + 1)
    .filter(([, b]) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
      && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3)
    .map(([other]) => `${text} over ${other}`));
  return [...cut.map(([text]) => `${text} is cut`), ...touch];
}"""


def test_associations_look_right(open_as, look, installs):
    name, options = look
    tab = open_as(Role.ANALYST, at=installs, **options)
    tab.ready(PAGE, charts=2)
    tab.screenshot(f"associations-{name}")
    assert tab.sideways() == 0
    assert tab.page.evaluate(OVERLAPS) == []
    assert tab.violations() == []


def test_another_value_is_chosen_and_its_shares_are_drawn(open_as, installs):
    tab = open_as(Role.ANALYST, at=installs)
    tab.ready(PAGE, charts=2)
    tab.page.select_option("#given", "facebook.com")
    tab.page.wait_for_url("**given=facebook.com**")
    words = tab.page.locator("section[aria-label='Conditional shares'] .note").inner_text()
    assert words.startswith("channel among reports whose homepage is facebook.com.")
    assert "homepage and channel are associated" in tab.page.locator("#summary").inner_text()
