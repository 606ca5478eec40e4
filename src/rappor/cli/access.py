"""`rappor access`: who may open the dashboard: accounts with a role, tokens, one-time links."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rappor.cli.arguments import UsageError
from rappor.cli.dashboard import DEFAULT_PORT, check_packages, folder
from rappor.cli.output import note, say, say_json, table
from rappor.cli.store_options import actor, add_data

if TYPE_CHECKING:
    from rappor.dashboard.state import DashboardState

ROLES = ("viewer", "analyst", "operator", "privacy-officer")
_EXAMPLE = """examples:
  rappor access new ada --role analyst --data data       a token, shown once
  rappor access link ada --data data                     a link that logs in once, for 15 minutes
  rappor access link guest --role viewer --data data     the same for an account without a token
  rappor access list --data data
  rappor access revoke ada --data data                   ends token, links and sessions at once

Tokens, links and sessions are kept as digests only. docs/dashboard.md tells what each role may."""


def register(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "access",
        help="who may open the dashboard: tokens, one-time links, roles",
        description="Make, list and end accounts of the dashboard.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    acts = parser.add_subparsers(dest="act", metavar="ACT", title="acts")
    parser.set_defaults(run=_no_act)
    new = _act(acts, "new", "make an account, and print its token: once", run_new)
    _add_role(new, True)
    link = _act(acts, "link", "print a link that logs in once, within 15 minutes", run_link)
    _add_role(link, False)
    link.add_argument(
        "--url",
        metavar="URL",
        help="where the dashboard is (default: where it last ran)",
    )
    _act(acts, "revoke", "end an account, its token, links and sessions", run_revoke)
    _act(acts, "list", "all accounts", run_list, named=False)
    return parser


def _act(
    acts: Any,
    name: str,
    about: str,
    run: Callable[[argparse.Namespace], int],
    *,
    named: bool = True,
) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = acts.add_parser(
        name, help=about, description=f"{about[0].upper()}{about[1:]}.", allow_abbrev=False
    )
    if named:
        made.add_argument("name", metavar="NAME", help="the account: a-z, 0-9, . _ and -")
    add_data(made)
    made.add_argument("--json", action="store_true", help="print JSON")
    made.add_argument(
        "--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS
    )
    made.set_defaults(run=run, parser=made)
    return made


def _add_role(parser: argparse.ArgumentParser, required: bool) -> None:
    about = "what it may do" if required else "makes the account where there is none"
    parser.add_argument(
        "--role",
        choices=ROLES,
        required=required,
        metavar="ROLE",
        help=f"{about}: {', '.join(ROLES)}",
    )


def _no_act(_: argparse.Namespace) -> int:
    raise UsageError("say what to do: new, link, list or revoke (see: rappor access --help)")


def run_new(args: argparse.Namespace) -> int:
    """Make an account with a token."""
    from rappor.dashboard.auth.roles import role_of

    with _state(args) as state:
        token = state.add_account(args.name, role_of(args.role), actor())
    if args.json:
        say_json({"name": args.name, "role": args.role, "token": token})
    else:
        say(str(token))
        note("this is the only time it is shown: the dashboard keeps a digest of it")
    return 0


def run_link(args: argparse.Namespace) -> int:
    """Make a one-time link."""
    from rappor.dashboard.auth.roles import role_of
    from rappor.dashboard.settings import login_link

    with _state(args) as state:
        role = None if args.role is None else role_of(args.role)
        secret = state.new_link(args.name, actor(), role)
        where = args.url or state.address or f"http://127.0.0.1:{DEFAULT_PORT}"
    address = login_link(where, secret)
    if args.json:
        say_json({"name": args.name, "link": address})
    else:
        say(address)
        note("it logs in once, within 15 minutes")
    return 0


def run_revoke(args: argparse.Namespace) -> int:
    """End an account."""
    with _state(args) as state:
        state.revoke(args.name, actor())
    if args.json:
        say_json({"name": args.name, "revoked": True})
    else:
        note(f"{args.name} is revoked: its token, links and sessions have ended")
    return 0


def run_list(args: argparse.Namespace) -> int:
    """All accounts."""
    with _state(args) as state:
        accounts = state.accounts()
    if args.json:
        fields = ("name", "role", "by_token", "made", "maker", "revoked", "sessions")
        say_json(
            {"accounts": [{name: getattr(each, name) for name in fields} for each in accounts]}
        )
        return 0
    if not accounts:
        note("no accounts yet: rappor access new NAME --role ROLE --data DIR")
        return 0
    rows = [("name", "role", "by", "made", "state", "sessions")]
    for each in accounts:
        by = "token, links" if each.by_token else "links"
        good = "good" if each.revoked is None else f"revoked {each.revoked}"
        rows.append((each.name, each.role, by, each.made, good, str(each.sessions)))
    for line in table(rows, left=5):
        say(line)
    return 0


@contextmanager
def _state(args: argparse.Namespace) -> Iterator[DashboardState]:
    """The state in a data folder, which must be there."""
    check_packages()
    from rappor.dashboard.settings import STATE_FILE
    from rappor.dashboard.state import DashboardState

    data = folder(args.data)
    if not data.is_dir():
        raise NotADirectoryError(20, "no such data folder", args.data)
    state = DashboardState(data / STATE_FILE)
    try:
        yield state
    finally:
        state.close()
