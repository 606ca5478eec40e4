"""The examples as the tests run them: in copies, with collectors of their own."""

import contextlib
import datetime
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from support.collecting import Process, collect_command, running
from support.command import environment
from support.ports import held_port

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
CLIENT = ROOT / "clients" / "js" / "src"


def copy_of(name: str, folder: Path) -> Path:
    """A copy of an example whose collections end a year from now, whenever the tests run."""
    made = folder / name
    shutil.copytree(EXAMPLES / name, made, ignore=shutil.ignore_patterns("__pycache__"))
    end = datetime.datetime.now(datetime.UTC).date() + datetime.timedelta(days=365)
    for file in made.rglob("*.toml"):
        text = file.read_text(encoding="utf-8")
        file.write_text(re.sub(r"(?m)^expires = .*$", f"expires = {end}", text), encoding="utf-8")
    return made


@dataclass(frozen=True, slots=True)
class WebExample:
    """The page, and the collector that its origin may send to."""

    folder: Path  # with collections and data
    url: str
    collector: Process


@contextlib.contextmanager
def web_example(folder: Path, *options: str) -> Iterator[WebExample]:
    """The example `web` on localhost, with a real collector."""
    page = copy_of("web", folder)
    with (
        held_port() as port,
        running(
            collect_command(page, "--allow-origin", f"http://localhost:{port}", *options)
        ) as collector,
    ):
        url = f"http://localhost:{port}"
        command = [sys.executable, page / "serve.py", "--port", port]
        command += ["--upload-to", f"http://localhost:{collector.port}", "--client", CLIENT]
        server = subprocess.Popen(
            [str(part) for part in command],
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == f"{url}\n"  # nothing if it has ended
            yield WebExample(page, url, collector)
        finally:
            server.kill()
            server.wait()
            if server.stdout is not None:
                server.stdout.close()
