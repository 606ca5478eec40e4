"""The way into the demo's dashboard: a link that logs in once."""

from __future__ import annotations

from contextlib import closing

from rappor.dashboard.auth.roles import Role
from rappor.dashboard.settings import STATE_FILE, login_link
from rappor.dashboard.state import DashboardState
from rappor.dashboard.state.accounts import LINK_LIFE
from rappor.demo.folder import DemoFolder

MINUTES = int(LINK_LIFE.total_seconds() // 60)
_NAME = "demo"


def link(where: DemoFolder, url: str) -> str:
    """An address that logs one browser in as an analyst, once, within `MINUTES`."""
    with closing(DashboardState(where.data / STATE_FILE, where.collections)) as state:
        return login_link(url, state.new_link(_NAME, "rappor demo", Role.ANALYST))
