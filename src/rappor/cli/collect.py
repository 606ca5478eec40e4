"""`rappor collect`: the HTTP service that receives reports."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from importlib.util import find_spec
from typing import Any

from rappor.cli.arguments import UsageError, count, port
from rappor.cli.output import note, say, say_json
from rappor.cli.paths import existing_folder, output_folder, path_of, target_of
from rappor.cli.store_options import add_store, link_store
from rappor.collection import Registry
from rappor.errors import MissingExtraError, ParamsError
from rappor.host import check_server_system, no_core_dumps

_EXAMPLE = """examples:
  rappor collect --data data --collections collections
  rappor collect --data data --collections collections --host :: --port 443 \\
      --tls-cert chain.pem --tls-key key.pem
  rappor collect --data data --collections collections --allow-origin https://app.example.org
  rappor collect --store postgresql://db.example.org/rappor --collections collections
  rappor keys new my-app --keys keys.json

The log goes to standard error, one JSON object a line. SIGTERM stops the collector, SIGHUP makes it
reload collections and keys. docs/operate.md is the operator's guide."""


def register(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "collect",
        help="receive reports over HTTP and store their counts",
        description="Receive batches of reports over HTTP; validate, store and acknowledge them.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_options(parser)
    new = parser.add_argument_group("keys")
    new.add_argument(
        "--new-key", metavar="NAME", help="the same as: rappor keys new NAME --keys FILE"
    )
    new.add_argument(
        "--key-for",
        metavar="COLLECTION",
        action="append",
        default=[],
        help="a collection that the new key may send to; may be repeated (default: all)",
    )
    new.add_argument(
        "--key-rate", metavar="N", type=count, help="reports a second that the new key allows"
    )
    new.add_argument(
        "--gateway",
        action="store_true",
        help="create a gateway key: a secret for importers and relays, for batches of any size",
    )
    new.add_argument("--json", action="store_true", help="print the new key as JSON")
    parser.set_defaults(run=run)
    return parser


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that `collect` and `serve` share."""
    parser.add_argument("--data", metavar="DIR", help="the data folder; created if missing")
    add_store(parser)
    parser.add_argument("--collections", metavar="DIR", help="the folder of collection files")
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: %(default)s)"
    )
    parser.add_argument(
        "--port",
        type=port,
        default=8765,
        metavar="N",
        help="port; 0 means any free one (default: %(default)s)",
    )
    parser.add_argument(
        "--share-port",
        action="store_true",
        help="let other collectors of this machine listen on the same port (needs --store)",
    )
    parser.add_argument(
        "--metrics-port",
        type=port,
        metavar="N",
        help="a port of 127.0.0.1 for the pages of this collector alone; /metrics is only there "
        "then (default: all pages are on --port)",
    )
    parser.add_argument("--tls-cert", metavar="FILE", help="PEM certificate chain, for HTTPS")
    parser.add_argument("--tls-key", metavar="FILE", help="private key of the certificate")
    parser.add_argument("--keys", metavar="FILE", help="require a key listed in this file")
    parser.add_argument(
        "--keys-optional",
        action="store_true",
        help="accept reports without a key too; only gateways need one of --keys",
    )
    parser.add_argument(
        "--rate",
        type=_rate,
        default=50.0,
        metavar="N",
        help="reports a second from one address prefix; 0 means no limit (default: %(default)s)",
    )
    parser.add_argument(
        "--forwarded",
        action="store_true",
        help="take the address from the last entry of X-Forwarded-For (only behind your own proxy)",
    )
    parser.add_argument(
        "--allow-origin",
        metavar="ORIGIN",
        action="append",
        default=[],
        help="let the web pages of this origin, such as https://app.example.org, send reports; may "
        "be repeated (default: none)",
    )
    parser.add_argument(
        "--connections",
        type=count,
        default=1024,
        metavar="N",
        help="maximum number of connections (default: %(default)s)",
    )
    parser.add_argument(
        "--prefix-connections",
        type=count,
        default=128,
        metavar="N",
        help="maximum number of connections from one address prefix; ignored with --forwarded "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--queue",
        type=count,
        default=4096,
        metavar="N",
        help="maximum number of batches waiting for a commit (default: %(default)s)",
    )
    parser.add_argument(
        "--log-level",
        default="info",
        choices=("debug", "info", "warning", "error"),
        help="least severe messages to log (default: %(default)s)",
    )


def options_again(args: argparse.Namespace) -> list[str]:
    """The shared options as a command line, to start another process with them."""
    options = ["--collections", args.collections]
    options += [] if args.data is None else ["--data", args.data]
    options += [] if args.store is None else ["--store", args.store]
    options += ["--host", args.host, "--port", str(args.port), "--rate", repr(args.rate)]
    options += ["--connections", str(args.connections), "--queue", str(args.queue)]
    options += ["--prefix-connections", str(args.prefix_connections)]
    options += ["--log-level", args.log_level]
    for option, value in {
        "--tls-cert": args.tls_cert,
        "--tls-key": args.tls_key,
        "--keys": args.keys,
    }.items():
        options += [] if value is None else [option, value]
    for origin in args.allow_origin:
        options += ["--allow-origin", origin]
    flags = {
        "--forwarded": args.forwarded,
        "--keys-optional": args.keys_optional,
        "--share-port": args.share_port,
    }
    return [*options, *(option for option, given in flags.items() if given)]


def check_options(args: argparse.Namespace) -> None:
    """Check what argparse cannot."""
    missing = [f"--{name}" for name in ("data", "collections") if getattr(args, name) is None]
    if args.store is not None and "--data" in missing:
        missing.remove("--data")
    if missing:
        raise UsageError(f"missing: {', '.join(missing)}; give the folder")
    if args.share_port and args.store is None:
        raise UsageError("--share-port needs --store URL: a data folder has one collector")
    if (args.tls_cert is None) != (args.tls_key is None):
        raise UsageError("--tls-cert and --tls-key go together: give both")
    if args.keys_optional and args.keys is None:
        raise UsageError("--keys-optional goes with --keys FILE")
    from rappor.collector.cors import check_origin

    for origin in args.allow_origin:
        try:
            check_origin(origin, "--allow-origin")
        except ParamsError as error:
            raise UsageError(str(error)) from None
    if args.data is not None:
        output_folder(args.data)
    if args.store is not None:
        link_store(args)
    Registry.open(existing_folder(args.collections, "folder of collections"))
    if args.tls_cert is not None:
        _check_certificate(args.tls_cert, args.tls_key)
    if args.keys is not None:
        from rappor.collector.keys import read_keys

        read_keys(args.keys)


def _check_certificate(chain: str, key: str) -> None:
    """ParamsError or OSError with the file that is wrong: an error of ssl names none."""
    import ssl

    for name, word, what in (
        (chain, b"CERTIFICATE-----", "certificate chain"),
        (key, b"PRIVATE KEY-----", "private key"),
    ):
        if word not in path_of(name).read_bytes():
            raise ParamsError(f"{name}: holds no {what} in PEM; name the file that does")
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path_of(chain), path_of(key), password="")
    except ssl.SSLError:
        raise ParamsError(
            f"{chain}: damaged, or {key} is not its key (a key with a password is not supported); "
            "check both files"
        ) from None


def run(args: argparse.Namespace) -> int:
    """Serve until stopped, or create a key."""
    if args.new_key is not None:
        return _new_key(args)
    if args.key_for or args.key_rate or args.gateway or args.json:
        raise UsageError(
            "--key-for, --key-rate, --gateway and --json go with --new-key: leave them out"
        )
    check_server_system()
    check_options(args)
    if args.metrics_port == 0:
        raise UsageError("--metrics-port 0: nobody would know the port; name one")
    no_core_dumps()
    if hasattr(signal, "SIGHUP"):  # nothing has been loaded yet that could be reloaded
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    for package in ("numpy", "prometheus_client", "uvicorn", "httptools"):
        if find_spec(package) is None:
            raise MissingExtraError("collector", "server")
    os.environ.setdefault(
        "OPENBLAS_NUM_THREADS", "1"
    )  # before numpy is imported: its threads only slow the collector down
    from rappor.collector import process
    from rappor.collector.settings import CollectorSettings

    code = process.run(
        CollectorSettings(
            data=_file(args.data),
            collections=_file(args.collections),
            host=args.host,
            port=args.port,
            tls_cert=_file(args.tls_cert),
            tls_key=_file(args.tls_key),
            keys=_file(args.keys),
            keys_optional=args.keys_optional,
            rate=args.rate,
            forwarded=args.forwarded,
            allow_origins=tuple(args.allow_origin),
            queue_batches=args.queue,
            max_connections=args.connections,
            max_prefix_connections=args.prefix_connections,
            log_level=args.log_level,
            store=args.store,
            share_port=args.share_port,
            metrics_port=args.metrics_port,
        )
    )
    if code:  # the store failed: a clean exit would sync data that must not be synced again
        sys.stderr.flush()
        os._exit(code)
    return code


def _new_key(args: argparse.Namespace) -> int:
    if args.keys is None:
        raise UsageError("--new-key needs --keys FILE, which stores the digest of the key")
    from rappor.collector.keys import Role, new_key

    role: Role = "gateway" if args.gateway else "ingest"
    target_of(args.keys)
    key = new_key(args.keys, args.new_key, tuple(args.key_for), float(args.key_rate or 0), role)
    if args.json:
        say_json({"name": args.new_key, "role": role, "key": key})
    else:
        say(key)
        note("rappor keys new NAME --keys FILE does the same; --new-key goes on working")
        note(f"save it now: it is not shown again, {args.keys} stores only its digest")
        if args.gateway:
            note("keep it secret: it allows any number of reports")
    return 0


def _file(text: str | None) -> Any:
    """A path with ~ expanded."""
    return None if text is None else str(path_of(text))


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0 <= rate < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 0")
    return rate
