"""`rappor access`: the accounts of the dashboard, with roles, tokens and one-time links."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rappor.cli.arguments import UsageError
from rappor.cli.dashboard import DEFAULT_PORT, check_packages
from rappor.cli.output import note, say, say_json, table
from rappor.cli.paths import existing_folder
from rappor.host import actor

if TYPE_CHECKING:
    from rappor.dashboard.state import DashboardState

ROLES = ("viewer", "analyst", "operator", "privacy-officer")
_EXAMPLE = """examples:
  rappor access new ada --role analyst --data data       prints a token, once
  rappor access link ada --data data                     prints a link that logs in once
  rappor access link guest --role viewer --data data     the same, for a new account without a token
  rappor access list --data data
  rappor access log --data data                          who logged in, decoded, exported
  rappor access revoke ada --data data                   ends token, links and sessions at once

The dashboard stores only digests of tokens, links and sessions. docs/dashboard.md lists what each
role may do."""


def register(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "access",
        help="manage the accounts of the dashboard: tokens, one-time links, roles",
        description="Create, list and revoke accounts of the dashboard.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    parser.set_defaults(run=_no_action)
    new = _add_action(
        actions, "new", "create an account and print its token, which is shown only once", run_new
    )
    _add_role(new, True)
    link = _add_action(
        actions, "link", "print a link that logs in once, within 15 minutes", run_link
    )
    _add_role(link, False)
    link.add_argument(
        "--url",
        metavar="URL",
        help="address of the dashboard (default: where it last ran)",
    )
    _add_action(
        actions, "revoke", "revoke an account with its token, links and sessions", run_revoke
    )
    _add_action(actions, "list", "list all accounts", run_list, named=False)
    _add_action(
        actions, "log", "print the dashboard's audit log, oldest first", run_log, named=False
    )
    return parser


def _add_action(
    actions: Any,
    name: str,
    about: str,
    run: Callable[[argparse.Namespace], int],
    *,
    named: bool = True,
) -> argparse.ArgumentParser:
    action: argparse.ArgumentParser = actions.add_parser(
        name, help=about, description=f"{about[0].upper()}{about[1:]}.", allow_abbrev=False
    )
    if named:
        action.add_argument("name", metavar="NAME", help="name of the account: a-z, 0-9, . _ and -")
    action.add_argument(
        "--data", metavar="DIR", required=True, help="the data folder of the dashboard"
    )
    action.add_argument("--json", action="store_true", help="print JSON")
    action.add_argument(
        "--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS
    )
    action.set_defaults(run=run, parser=action)
    return action


def _add_role(parser: argparse.ArgumentParser, required: bool) -> None:
    about = "role of the account" if required else "create a missing account with this role"
    parser.add_argument(
        "--role",
        choices=ROLES,
        required=required,
        metavar="ROLE",
        help=f"{about}: {', '.join(ROLES)}",
    )


def _no_action(_: argparse.Namespace) -> int:
    raise UsageError("give an action: new, link, list, log or revoke (see: rappor access --help)")


def run_new(args: argparse.Namespace) -> int:
    """Create an account with a token."""
    from rappor.dashboard.auth.roles import role_of

    with _state(args) as state:
        token = state.add_account(args.name, role_of(args.role), actor())
    if args.json:
        say_json({"name": args.name, "role": args.role, "token": token})
    else:
        say(str(token))
        note("save it now: it is not shown again, the dashboard keeps only its digest")
    return 0


def run_link(args: argparse.Namespace) -> int:
    """Create a one-time link."""
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
        note("the link works once, within 15 minutes")
    return 0


def run_revoke(args: argparse.Namespace) -> int:
    """Revoke an account."""
    with _state(args) as state:
        state.revoke(args.name, actor())
    if args.json:
        say_json({"name": args.name, "revoked": True})
    else:
        note(f"revoked {args.name}: its token, links and sessions no longer work")
    return 0


def run_list(args: argparse.Namespace) -> int:
    """List all accounts."""
    with _state(args) as state:
        accounts = state.accounts()
    if args.json:
        fields = ("name", "role", "by_token", "made", "maker", "revoked", "sessions")
        say_json(
            {
                "accounts": [
                    {name: getattr(account, name) for name in fields} for account in accounts
                ]
            }
        )
        return 0
    if not accounts:
        note("no accounts yet: rappor access new NAME --role ROLE --data DIR")
        return 0
    rows = [("name", "role", "by", "made", "state", "sessions")]
    for account in accounts:
        by = "token, links" if account.by_token else "links"
        good = "good" if account.revoked is None else f"revoked {account.revoked}"
        row = (account.name, account.role, by, account.made, good, str(account.sessions))
        rows.append(row)
    for line in table(rows, left=5):
        say(line)
    return 0


def run_log(args: argparse.Namespace) -> int:
    """Print who did what on the dashboard; `rappor status --audit` has the log of the store."""
    with _state(args) as state:
        log = state.audit_log()
    if args.json:
        say_json({"audit": [entry._asdict() for entry in log]})
        return 0
    if not log:
        note("the log is empty: nobody has used the dashboard yet")
        return 0
    for line in table([("when", "who", "did", "what"), *log], left=4):
        say(line)
    return 0


@contextmanager
def _state(args: argparse.Namespace) -> Iterator[DashboardState]:
    """The dashboard's state in a data folder, which must exist."""
    check_packages()
    from rappor.dashboard.settings import STATE_FILE
    from rappor.dashboard.state import DashboardState

    data = existing_folder(args.data, "data folder")
    state = DashboardState(data / STATE_FILE)
    try:
        yield state
    finally:
        state.close()
