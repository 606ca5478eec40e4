"""Serve the page on this machine, with the content policy that it is made for.

python serve.py --upload-to http://localhost:8765
"""

from __future__ import annotations

import argparse
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from rappor.collection import Registry

HERE = Path(__file__).resolve().parent
CLIENT = HERE.parents[1] / "clients" / "js" / "src"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
}


def policy(upload_to: str) -> str:
    """Everything is forbidden but the page's own files, and reports to the collector."""
    collector = "{0.scheme}://{0.netloc}".format(urlsplit(upload_to))
    return (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        f"connect-src 'self' {collector}; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


def pages(upload_to: str, collections: Path, client: Path) -> dict[str, tuple[str, bytes]]:
    """Every address with its content: nothing else can be asked for."""
    found = {f"/{file.name}": file for file in HERE.iterdir() if file.suffix in TYPES}
    found |= {f"/rappor/{file.name}": file for file in client.glob("*.js")}
    made = {path: (TYPES[file.suffix], file.read_bytes()) for path, file in found.items()}
    exported = [item.to_client_json() for item in Registry.open(collections).newest()]
    made["/collections.json"] = (TYPES[".json"], f"[{','.join(exported)}]".encode())
    made["/config.json"] = (TYPES[".json"], json.dumps({"uploadTo": upload_to}).encode())
    made["/"] = made["/index.html"]
    return made


def server(port: int, upload_to: str, collections: Path, client: Path) -> ThreadingHTTPServer:
    content, allowed = pages(upload_to, collections, client), policy(upload_to)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            kind, body = content.get(self.path.partition("?")[0], ("text/plain", b""))
            self.send_response(200 if body else 404)
            for name, value in {
                "Content-Type": kind,
                "Content-Length": str(len(body)),
                "Content-Security-Policy": allowed,
                "X-Content-Type-Options": "nosniff",
                "Referrer-Policy": "no-referrer",
                "Cross-Origin-Opener-Policy": "same-origin",
                "Cache-Control": "no-store",
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """No log: it would have the addresses of visitors."""

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve the example on this machine.")
    parser.add_argument("--port", type=int, default=8000, help="port (default: %(default)s)")
    parser.add_argument("--upload-to", default="http://localhost:8765", help="the collector")
    parser.add_argument("--collections", type=Path, default=HERE / "collections")
    parser.add_argument("--client", type=Path, default=CLIENT, help="the sources of the client")
    args = parser.parse_args()
    with server(args.port, args.upload_to, args.collections, args.client) as running:
        print(f"http://localhost:{running.server_port}", flush=True)
        running.serve_forever()


if __name__ == "__main__":
    main()
