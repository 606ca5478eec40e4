"""`rappor client inspect DIR`: show a person what their client sent and will send."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from rappor.cli.arguments import UsageError
from rappor.cli.output import say, say_json, table
from rappor.cli.paths import existing_folder
from rappor.errors import ParamsError
from rappor.privacy.rounding import up, up_sum

_UNIT = "It covers all reports on these values: those made, and those that may still follow."


def register(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb and its action."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "client",
        help="show what a client sent and will send (inspect)",
        description="Look into the directory of a client, without changing it.",
        epilog="Example: rappor client inspect ~/.app/rappor",
        allow_abbrev=False,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    action: argparse.ArgumentParser = actions.add_parser(
        "inspect",
        help="show exactly what was sent, what waits, and its cost in ε",
        description="Show each recently sent report and each waiting one, bit by bit, with "
        "everything sent along, and the contents of the ledger. The secret is never shown. "
        "Values cannot be shown: the directory holds none.",
        epilog="Example: rappor client inspect ~/.app/rappor --json",
        allow_abbrev=False,
    )
    action.add_argument("directory", metavar="DIR", help="the client's directory")
    action.add_argument(
        "--json", action="store_true", help="print JSON, including the bytes as sent"
    )
    action.add_argument(
        "--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS
    )
    action.set_defaults(run=run, parser=action)
    parser.set_defaults(run=_no_action)
    return parser


def _no_action(_: argparse.Namespace) -> int:
    raise UsageError("give an action: inspect (see: rappor client --help)")


def run(args: argparse.Namespace) -> int:
    """Show a client's directory."""
    from rappor.client.folder import Folder
    from rappor.client.identity import SECRET
    from rappor.client.preview import describe, read_batches
    from rappor.client.problems import PROBLEMS
    from rappor.client.status import has_client, inspect_folder

    folder = Folder(existing_folder(args.directory, "directory of a client"))
    if not has_client(folder):
        raise ParamsError(
            f"{args.directory}: no client has reported from this directory; give the one that the "
            "application passes to Client.open"
        )
    own = folder.read(SECRET) is not None
    seen = inspect_folder(folder)
    if seen.problem == "secret-missing" and not own:
        # The secret may belong to an account, and be stored elsewhere.
        seen = inspect_folder(folder, account_secret=True)
    sent, waiting = read_batches(folder)
    secret = "own" if own else "none here"
    state = "opted out" if seen.opted_out else "stopped" if seen.problem else "as it should be"
    if args.json:
        say_json(
            {
                "directory": str(args.directory),
                "state": state,
                "problem": seen.problem,
                "secret": secret,
                "epsilon": seen.ledger.epsilon(),
                "collections": _collections(seen.ledger),
                "batches": dict(seen.batches),
                "sent": [asdict(batch) for batch in sent],
                "waiting": [asdict(batch) for batch in waiting],
            }
        )
        return 0
    say(f"Client in {args.directory}: {state}")
    if seen.problem:
        say(f"  {PROBLEMS[seen.problem]}")
    about = "in the file `secret`, not shown" if own else "none in this directory"
    say(f"Secret: {about}. Values: none are kept, only keyed fingerprints.")
    say()
    rows = [
        (row["name"], str(row["values"]), str(row["reports"]), up(row["epsilon"]))
        for row in _collections(seen.ledger)
    ]
    for line in table([("collection", "values", "reports", "ε"), *rows]):
        say(line)
    together = up_sum(row["epsilon"] for row in _collections(seen.ledger))
    say(f"ε of all collections together: {together}")
    say(_UNIT)
    if any(seen.ledger.carried.values()):
        say("ε of forgotten secrets and of closed periods is included.")
    for title, batches in (("Sent", sent), ("Waiting to be sent", waiting)):
        say()
        say(f"{title}: {len(batches) or 'nothing'}")
        for batch in batches:
            for line in describe(batch):
                say(f"  {line}")
    if seen.batches:
        say()
        say("Batches so far: " + ", ".join(f"{n} {what}" for what, n in seen.batches.items()))
    return 0


def _collections(ledger: Any) -> list[dict[str, Any]]:
    names = sorted({account.collection for account in ledger.accounts} | set(ledger.carried))
    return [
        {
            "name": name,
            "values": sum(
                account.distinct for account in ledger.accounts if account.collection == name
            ),
            "reports": sum(
                term.made
                for account in ledger.accounts
                if account.collection == name
                for term in account.terms
            ),
            "epsilon": ledger.epsilon([name]),
            "carried": ledger.carried.get(name, 0.0),
        }
        for name in names
    ]
