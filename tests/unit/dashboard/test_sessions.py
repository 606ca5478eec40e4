"""Sessions and one-time links when clocks go wrong, or when many use one at once."""

import threading
from datetime import timedelta

from rappor.dashboard.auth.roles import Role
from rappor.dashboard.context import Context
from rappor.dashboard.state import DashboardState
from rappor.dashboard.state.accounts import LINK_LIFE, SESSION_IDLE, SESSION_LIFE
from support.dashboard_context import Browser, Clock, entered, is_in


def test_a_clock_that_was_ahead_leaves_no_session_that_lasts(
    context: Context, clock: Clock
) -> None:
    clock.go(days=3650)
    browser = entered(context)
    clock.go(days=-3650)
    assert not is_in(browser)
    entered(context)  # the next login clears up
    clock.go(days=3650)
    assert not is_in(browser)


def test_a_clock_that_was_ahead_leaves_no_link_that_lasts(context: Context, clock: Clock) -> None:
    clock.go(days=3650)
    secret = context.state.new_link("eve", "test", Role.OPERATOR)
    clock.go(days=-3650)
    assert context.state.look_link(secret) is None
    assert context.state.log_in(link=secret) is None


def test_a_clock_that_is_set_right_by_a_minute_logs_nobody_out(
    context: Context, clock: Clock
) -> None:
    browser = entered(context)
    secret = context.state.new_link("eve", "test", Role.VIEWER)
    clock.go(minutes=-1)
    assert is_in(browser)
    assert context.state.look_link(secret) is not None


def test_a_clock_that_goes_back_bit_by_bit_lengthens_no_session(
    context: Context, clock: Clock
) -> None:
    browser = entered(context)
    clock.go(seconds=SESSION_IDLE.total_seconds() - 1)
    assert is_in(browser)
    clock.go(seconds=-SESSION_IDLE.total_seconds() / 2)
    assert not is_in(browser)
    assert timedelta(0) < LINK_LIFE < SESSION_IDLE < SESSION_LIFE


def test_of_many_who_use_a_link_at_once_one_gets_in(context: Context) -> None:
    secret = context.state.new_link("eve", "test", Role.VIEWER)
    other = DashboardState(context.settings.state_file, now=context.state._now)
    found: list[str | None] = []
    ready = threading.Barrier(8)

    def use(state: DashboardState) -> None:
        ready.wait()
        found.append(state.log_in(link=secret))

    racers = [threading.Thread(target=use, args=(each,)) for each in [context.state, other] * 4]
    for each in racers:
        each.start()
    for each in racers:
        each.join()
    other.close()
    assert len([each for each in found if each is not None]) == 1


def test_looking_at_a_link_does_not_use_it(context: Context) -> None:
    secret = context.state.new_link("eve", "test", Role.VIEWER)
    for method in ("GET", "HEAD", "GET"):
        assert Browser(context).send(method, f"/login?link={secret}").status_code == 200
    assert context.state.look_link(secret) == ("eve", Role.VIEWER)


def test_a_session_that_somebody_else_chose_is_not_taken_over(context: Context) -> None:
    browser = Browser(context)
    browser.cookies = {"rappor-session-8766": "chosen", "rappor-visit-8766": "chosen"}
    browser.log_in(Role.VIEWER)
    assert "chosen" not in browser.cookies.values()
    assert context.state.session("chosen") is None
