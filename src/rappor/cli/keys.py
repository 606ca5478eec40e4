"""`rappor keys new|list|revoke --keys FILE`: the keys of applications and gateways.

A key is made by the program, so it is never an argument and in no list of processes. It is printed
once, or written to a file of its owner; the file of keys has only its digest.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rappor.cli.arguments import UsageError, count
from rappor.cli.output import note, say, say_json, table
from rappor.cli.paths import path_of, target_of
from rappor.errors import ParamsError
from rappor.files import write_text

if TYPE_CHECKING:
    from rappor.collector.keys import Key, Role

_EXAMPLE = """examples:
  rappor keys new my-app --keys keys.json --collection homepage --rate 500     prints a key, once
  rappor keys new importer --gateway --keys keys.json --output importer.key    writes it to a file
  rappor keys list --keys keys.json
  rappor keys revoke my-app --keys keys.json

A collector that is started with --keys reads the file again on SIGHUP (systemctl reload rappor)."""
_RELOAD = "a running collector reads the file on SIGHUP: systemctl reload rappor"


def register(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "keys",
        help="manage the keys of applications and gateways (new, list, revoke)",
        description="Create, list and revoke the keys that a collector started with --keys "
        "accepts. An ingest key ships in an application and is public. A gateway key is a secret "
        "of an importer or relay, for batches of any size.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    parser.set_defaults(run=_no_action)
    new = _add_action(actions, "new", "create a key and show it once", run_new)
    new.add_argument(
        "--gateway", action="store_true", help="create a gateway key, which is a secret"
    )
    new.add_argument(
        "--collection",
        metavar="NAME",
        action="append",
        default=[],
        help="a collection that the key may send to; may be repeated (default: all)",
    )
    new.add_argument(
        "--rate", metavar="N", type=count, help="reports a second with the key (default: no limit)"
    )
    new.add_argument(
        "--output", metavar="FILE", help="write the key to a new file instead of printing it"
    )
    _add_action(actions, "list", "list all keys, without the keys themselves", run_list)
    _add_action(actions, "revoke", "revoke a key", run_revoke)
    return parser


def _add_action(
    actions: Any, name: str, about: str, run: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    action: argparse.ArgumentParser = actions.add_parser(
        name, help=about, description=f"{about[0].upper()}{about[1:]}.", allow_abbrev=False
    )
    if name != "list":
        action.add_argument("name", metavar="NAME", help="name of the key: a-z, 0-9, _ and -")
    action.add_argument(
        "--keys", required=True, metavar="FILE", help="the collector's file of keys"
    )
    action.add_argument("--json", action="store_true", help="print JSON")
    action.add_argument(
        "--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS
    )
    action.set_defaults(run=run, parser=action)
    return action


def _no_action(_: argparse.Namespace) -> int:
    raise UsageError("give an action: new, list or revoke (see: rappor keys --help)")


def run_new(args: argparse.Namespace) -> int:
    """Create a key; print it, or write it to a file that only its owner can read."""
    from rappor.collector.keys import new_key

    role: Role = "gateway" if args.gateway else "ingest"
    keys = target_of(args.keys)
    output = None if args.output is None else _new_secret_file(args.output)

    def save(secret: str) -> None:
        """Show the key; one that nobody could read is not registered."""
        if output is not None:
            write_text(output, f"{secret}\n", private=True)
        if args.json:
            shown = {"key": secret} if output is None else {"output": str(output)}
            say_json({"name": args.name, "role": role, **shown})
        elif output is None:
            say(secret)
        sys.stdout.flush()

    try:
        new_key(keys, args.name, tuple(args.collection), float(args.rate or 0), role, save=save)
    except BaseException:
        if output is not None:
            output.unlink(missing_ok=True)
        raise
    if args.json:
        return 0
    if output is None:
        note(f"save it now: it is not shown again, {args.keys} stores only its digest")
    else:
        note(f"wrote the key to {output}, which only you can read")
    if args.gateway:
        note("keep it secret: it allows any number of reports")
    note(_RELOAD)
    return 0


def _new_secret_file(name: str) -> Path:
    """An empty file for its owner only. An existing file may have other readers: it is refused."""
    target_of(name)
    path = path_of(name)
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        raise ParamsError(f"{name}: exists already; choose a new file for the key") from None
    return path


def run_list(args: argparse.Namespace) -> int:
    """List all keys."""
    from rappor.collector.keys import list_keys

    keys = list_keys(path_of(args.keys))
    if args.json:
        fields = ("name", "role", "collections", "rate", "created", "revoked")
        say_json(
            {"keys": [{field: getattr(key, field) or None for field in fields} for key in keys]}
        )
        return 0
    if not keys:
        note(f"{args.keys} has no keys: rappor keys new NAME --keys {args.keys}")
        return 0
    rows = [("name", "role", "collections", "reports a second", "created", "state")]
    for line in table([*rows, *map(_row, keys)], left=6):
        say(line)
    return 0


def _row(key: Key) -> tuple[str, ...]:
    return (
        key.name,
        key.role,
        ", ".join(key.collections) or "all",
        f"{key.rate:,.15g}" if key.rate else "no limit",
        key.created or "–",
        f"revoked {key.revoked}" if key.revoked else "valid",
    )


def run_revoke(args: argparse.Namespace) -> int:
    """Revoke a key."""
    from rappor.collector.keys import revoke_key

    revoked = revoke_key(path_of(args.keys), args.name)
    if args.json:
        say_json({"name": revoked.name, "revoked": revoked.revoked})
    else:
        note(f"revoked {revoked.name}: {_RELOAD}")
        note("clients keep refused reports for 14 days, in case it was revoked too early")
    return 0
