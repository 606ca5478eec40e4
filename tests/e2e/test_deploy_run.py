"""The commands of the image, of compose, of Kubernetes and of the units run outside a container.

Only what cannot be the same here is changed: folders, and names and ports of other machines.
"""

import hashlib
import http.client
import json
import os
import re
import shlex
import shutil
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rappor.errors import StoreRefused
from rappor.host import LOOPBACK
from rappor.store import open_store
from rappor.wire import BINARY, REPORTS_PATH, encode_batch
from support.collecting import Process, batch, client_of, write_collections
from support.command import COMMAND, environment
from support.dashboard import DashboardProcess
from support.deploying import (
    COMPOSE_FILE,
    DEPLOY,
    ROOT,
    command_of,
    compose,
    container,
    dockerfile_steps,
)
from support.ports import held_port
from support.postgres import Server, a_server, children, is_root, programs
from support.waiting import wait_for

PASSWORDS = {name: f"{name.lower()}-secret" for name in ("POSTGRES", "INGEST", "ANALYSIS")}
ASK_FOR_PASSWORDS = "host rappor rappor_ingest,rappor_analysis all scram-sha-256\n"


def run(
    command: Sequence[str | Path], env: dict[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command],
        env=environment(env),
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


@dataclass
class Stack:
    """The services of the compose file as processes of this machine.

    Attributes:
        folder: for files.
        server: PostgreSQL.
        ports: of services that run.
    """

    folder: Path
    server: Server
    ports: dict[str, int] = field(default_factory=dict)

    def local(self, word: str) -> str:
        """A word of a command, with the places of this machine."""
        word = word.replace("@postgres/", f"@{LOOPBACK}:{self.server.port}/")
        for name, port in self.ports.items():
            word = re.sub(rf"\b{name}:\d+", f"{LOOPBACK}:{port}", word)
        word = word.replace("/etc/rappor/collections", str(self.folder / "collections"))
        return word.replace("/var/lib/rappor", str(self.folder / "data"))

    def environment(self, service: str) -> dict[str, str]:
        """The environment of a service, with the passwords of the file .env."""
        found = compose()["services"][service].get("environment", {})
        made = {
            name: re.sub(r"\$\{(\w+)_PASSWORD:\?\}", lambda m: PASSWORDS[m[1]], str(value))
            for name, value in found.items()
        }
        here = {"PGHOST": LOOPBACK, "PGPORT": str(self.server.port)}
        return made | {name: value for name, value in here.items() if "PGHOST" in made}

    def command(self, service: str) -> list[str]:
        """The command of a service of the image."""
        return [*COMMAND, *map(self.local, command_of(service))]

    @contextmanager
    def serving(self, service: str) -> Iterator[Process]:
        """A service that listens, on any free port."""
        kind = DashboardProcess if service == "dashboard" else Process
        process = kind([*self.command(service), "--port=0"], self.environment(service))
        try:
            process.wait_until_listening()
            self.ports[service] = process.port
            yield process
            assert process.end() == 0, process.text
        finally:
            process.close()

    def check_health(self, service: str) -> int:
        """The exit code of the health check of a service, on its port."""
        found = compose()["services"][service].get("healthcheck")
        if found is None:
            (text,) = (rest for word, rest in dockerfile_steps() if word == "HEALTHCHECK")
            test = json.loads(text[text.index("[") :])
        else:
            assert found["test"][0] == "CMD"
            test = found["test"][1:]
        port = self.ports[service]
        words = [re.sub(rf"{LOOPBACK}:\d+", f"{LOOPBACK}:{port}", word) for word in test]
        return run([sys.executable if word == "python" else word for word in words]).returncode


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """PostgreSQL as its image makes it, after the services that end when they are done."""
    folder = tmp_path_factory.mktemp("stack")
    write_collections(folder)
    (folder / "data").mkdir(mode=0o700)
    with a_server() as server:
        made = Stack(folder, server)
        server.sql(f"CREATE ROLE rappor SUPERUSER LOGIN PASSWORD '{PASSWORDS['POSTGRES']}'")
        server.sql("CREATE DATABASE rappor OWNER rappor")
        access = server.folder / "pg_hba.conf"
        access.write_text(ASK_FOR_PASSWORDS + access.read_text())
        server.sql("SELECT pg_reload_conf()")
        done = run(made.command("schema"), made.environment("schema"))
        assert done.returncode == 0, done.stderr
        done = run(roles_command(), made.environment("roles"))
        assert done.returncode == 0, done.stderr
        yield made


def roles_command() -> list[str]:
    """The command of the service `roles`, with the files that it mounts."""
    words = command_of("roles")
    for mount in compose()["services"]["roles"]["volumes"]:
        source, place, _ = mount.split(":")
        file = str((COMPOSE_FILE.parent / source).resolve())
        words = [word.replace(place, file) for word in words]
    return [str(programs() / words[0]), *words[1:]]


def test_the_database_is_healthy_when_it_answers(stack: Stack) -> None:
    _, program, *options = compose()["services"]["postgres"]["healthcheck"]["test"]
    ask = [programs() / program, *options]
    assert run([*ask, f"--port={stack.server.port}"]).returncode == 0
    with held_port() as silent:
        assert run([*ask, f"--port={silent}"]).returncode != 0


def test_the_service_for_retention_does_what_a_collector_may_not(stack: Stack) -> None:
    """Now, again after each day; and it ends at once when it is told to."""
    service = compose()["services"]["retain"]
    (script,) = command_of("retain")
    script = (
        stack.local(script)
        .replace("$$", "$")
        .replace("rappor retain", f"{shlex.join(COMMAND)} retain")
    )
    process = subprocess.Popen(
        [*service["entrypoint"], script],
        env=environment(stack.environment("retain")),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        wait_for(lambda: "batch tokens deleted" in process.stdout.readline(), "retention")  # type: ignore[union-attr]
        wait_for(lambda: children(process.pid), "the pause")
        process.terminate()
        assert process.wait(60) == 0
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
    ingest = stack.local("postgresql://rappor_ingest:ingest-secret@postgres/rappor")
    with closing(open_store(ingest)) as store:  # the role of collectors can tell
        assert store.retained is not None
        with pytest.raises(StoreRefused):
            store.retain(store.retained)


def test_a_failed_retention_ends_the_service_so_that_it_is_started_again(stack: Stack) -> None:
    service = compose()["services"]["retain"]
    (script,) = command_of("retain")
    script = script.replace("$$", "$").replace("rappor retain", "false")
    assert run([*service["entrypoint"], script]).returncode == 1


def test_tables_and_roles_can_be_made_again(stack: Stack) -> None:
    """`docker compose up` runs both services each time."""
    assert run(stack.command("schema"), stack.environment("schema")).returncode == 0
    done = run(roles_command(), stack.environment("roles"))
    assert done.returncode == 0, done.stderr


def test_a_wrong_password_is_refused_and_not_shown(stack: Stack) -> None:
    done = run(stack.command("collector-1"), {"PGPASSWORD": "wrong-secret"})
    assert done.returncode != 0
    assert "wrong-secret" not in done.stdout + done.stderr


@pytest.mark.long
def test_two_collectors_count_a_batch_once_and_the_dashboard_runs_next_to_them(
    stack: Stack, tmp_path: Path
) -> None:
    with ExitStack() as running:
        collectors = [running.enter_context(stack.serving(f"collector-{n}")) for n in (1, 2)]
        for number, process in enumerate(collectors, 1):
            assert stack.check_health(f"collector-{number}") == 0
            check_probes("collector", process.port)
        sent = batch()
        for process in (*collectors, collectors[0]):
            with client_of(process) as client:
                assert client.deliver(sent).status == 204
        pages = []
        for process in collectors:
            with client_of(process) as client:
                pages.append(client.get("/metrics").body.decode())
        counted = [int(re.findall(r"^rappor_reports_total (\d+)", page, re.M)[0]) for page in pages]
        assert counted == [1, 0]
        dashboard = running.enter_context(stack.serving("dashboard"))
        assert stack.check_health("dashboard") == 0
        check_probes("dashboard", dashboard.port)
        if shutil.which("nginx") is not None:
            check_nginx(stack, tmp_path, running.enter_context(held_port()))
    with held_port() as silent:
        stack.ports.update({"collector-1": silent, "dashboard": silent})
        assert stack.check_health("collector-1") != 0
        assert stack.check_health("dashboard") != 0


def check_probes(name: str, port: int) -> None:
    """The probes of the Kubernetes container succeed on this process."""
    found = container(name)
    for kind in ("readinessProbe", "livenessProbe", "startupProbe"):
        connection = http.client.HTTPConnection(LOOPBACK, port, timeout=60)
        get = found[kind].get("httpGet")
        if get is None:
            assert found[kind]["tcpSocket"] == {"port": "http"}
            connection.connect()
        else:
            headers = {each["name"]: each["value"] for each in get.get("httpHeaders", ())}
            connection.request("GET", get["path"], headers=headers)
            assert connection.getresponse().status == 200, kind
        connection.close()


def check_nginx(stack: Stack, folder: Path, port: int) -> None:
    """nginx with its file, on this port, passes reports on, and nothing else."""
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    made += ["-nodes", "-subj", "/CN=reports.example.org"]
    made += ["-keyout", str(folder / "key.pem"), "-out", str(folder / "chain.pem")]
    assert run(made).returncode == 0
    # First, because the folder of the test may itself be in /tmp.
    text = (
        (DEPLOY / "docker" / "nginx.conf")
        .read_text(encoding="utf-8")
        .replace("/tmp/", f"{folder}/")
    )
    text = known_to_nginx(stack.local(text)).replace("listen 8443", f"listen {LOOPBACK}:{port}")
    text = text.replace("/run/secrets/tls_certificate", str(folder / "chain.pem"))
    text = text.replace("/run/secrets/tls_key", str(folder / "key.pem"))
    (folder / "nginx.conf").write_text(text)
    (folder / "empty").mkdir()
    where = ["-p", folder / "empty", "-e", folder / "error.log", "-c", folder / "nginx.conf"]
    checked = run(["nginx", "-t", *where])
    assert checked.returncode == 0, checked.stderr
    command = compose()["services"]["nginx"]["command"]
    process = subprocess.Popen([*command, *map(str, where)], stderr=subprocess.DEVNULL)
    try:
        wait_for(
            lambda: (folder / "nginx.pid").exists() and _https(port, "/")[0] == 404,
            "nginx",
            process=process,
        )
        body = encode_batch(batch())
        wait_for(lambda: _https(port, REPORTS_PATH, body)[0] == 204)
        assert _https(port, "/metrics")[0] == 404
        assert _https(port, "/login", name="stats.example.org")[0] == 200
    finally:
        process.terminate()
        process.wait(60)
    said = [file for file in folder.rglob("*.log") if file.stat().st_size]
    assert said == []  # no log, whatever happened


def _https(
    port: int, path: str, body: bytes | None = None, name: str = "reports.example.org"
) -> tuple[int, bytes]:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection(LOOPBACK, port, timeout=60, context=context)
    try:
        headers = {"Host": name, "User-Agent": "test", "Content-Type": BINARY}
        connection.request("GET" if body is None else "POST", path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except OSError:
        return 0, b""
    finally:
        connection.close()


def test_nginx_says_why_it_does_not_start_and_nothing_later(tmp_path: Path) -> None:
    """docs/operate.md, "Containers": its log is that of the container."""
    if shutil.which("nginx") is None:
        pytest.skip("nginx is not installed")
    text = (DEPLOY / "docker" / "nginx.conf").read_text(encoding="utf-8")
    text = known_to_nginx(text.replace("/tmp/", f"{tmp_path}/")).replace("8443", "no-port")
    (tmp_path / "nginx.conf").write_text(text)
    where = ["-p", tmp_path, "-e", tmp_path / "error.log", "-c", tmp_path / "nginx.conf"]
    done = run([*compose()["services"]["nginx"]["command"], *where])
    assert done.returncode != 0
    assert "[emerg]" in done.stderr


def known_to_nginx(text: str) -> str:
    """The file of the image's nginx, 1.29, without what an older installed one does not know."""
    said = run(["nginx", "-v"]).stderr
    version = tuple(int(part) for part in re.findall(r"\d+", said)[:3])
    if version < (1, 27, 3):
        text = text.replace(" resolve;", ";")
    return text.replace("    http2 on;\n", "") if version < (1, 25, 1) else text


# The guide.


def steps_before_docker() -> list[str]:
    """The lines of the guide that prepare the folder of the compose file, but for certificates."""
    guide = (ROOT / "docs" / "operate.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```sh\n(make dist\ncd deploy/docker\n.*?)```", guide, re.S)
    lines = block.replace("\\\n", " ").splitlines()
    start, end = (lines.index(line) for line in (lines[2], next(filter(_is_copy, lines))))
    return lines[start:end]


def _is_copy(line: str) -> bool:
    return line.startswith("cp ")


def test_the_user_of_the_containers_reads_what_the_guide_makes(tmp_path: Path) -> None:
    """compose mounts ./collections into containers whose user is 10001, without capabilities."""
    steps = "\n".join(steps_before_docker()).replace("rappor ", f"{shlex.join(COMMAND)} ")
    done = run(["/bin/sh", "-ec", f"umask 077\n{steps}"], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "tls").stat().st_mode & 0o777 == 0o700
    for path in (tmp_path / "collections", *(tmp_path / "collections").iterdir()):
        wanted = 0o555 if path.is_dir() else 0o444
        assert path.stat().st_mode & wanted == wanted, path.name
    if is_root():
        done = subprocess.run(  # a mount shows the folder itself, whatever is above it
            ["cat", "theme.toml"],
            cwd=tmp_path / "collections",
            user=10001,
            group=10001,
            extra_groups=[],
            capture_output=True,
            check=False,
        )
        assert b"theme" in done.stdout, done.stderr


# The image.


def test_the_image_says_what_it_can_do_when_no_command_is_given() -> None:
    steps = dict(dockerfile_steps())
    words = [*json.loads(steps["ENTRYPOINT"]), *json.loads(steps["CMD"])]
    done = run([*COMMAND, *words[1:]])
    assert done.returncode == 0
    assert "collect" in done.stdout


@pytest.mark.parametrize(
    "packages",
    [
        pytest.param("none", marks=pytest.mark.long),
        pytest.param("all", marks=pytest.mark.soak),
    ],
)
def test_the_commands_that_build_the_image_install_the_wheel(packages: str, tmp_path: Path) -> None:
    """With all packages they are those of the image, from the package index."""
    dist, target, data = tmp_path / "dist", tmp_path / "rappor", tmp_path / "data"
    dist.mkdir()
    pip = (sys.executable, "-m", "pip", "--isolated", "--disable-pip-version-check", "wheel", "-q")
    done = run([*pip, "--no-build-isolation", "--no-deps", "--no-index", "-w", dist, ROOT])
    assert done.returncode == 0, done.stderr
    pinned = (ROOT / "constraints-demo.txt").read_text(encoding="utf-8")
    (dist / "constraints-demo.txt").write_text(pinned if packages == "all" else "# none\n")
    sums = [
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}" for file in dist.iterdir()
    ]
    (dist / "SHA256SUMS").write_text("\n".join(sums) + "\n")
    (step,) = (rest for word, rest in dockerfile_steps() if word == "RUN")
    step = step.replace("/opt/rappor", str(target)).replace("/var/lib/rappor", str(data))
    step = step.replace("python -m venv", f"{sys.executable} -m venv")
    done = run(["/bin/sh", "-c", step], cwd=dist)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (data.stat().st_mode & 0o777) == 0o700
    assert run([target / "bin" / "rappor", "--version"]).returncode == 0
    if packages == "all":
        assert run([target / "bin" / "rappor", "collect", "--help"]).returncode == 0
        shutil.rmtree(target)
    (dist / "constraints-demo.txt").write_text(pinned + "\n")  # not the file of the release
    again = run(["/bin/sh", "-c", step.split(" && ")[0]], cwd=dist)
    assert again.returncode != 0


# systemd.


def unit_commands(name: str, folder: Path, options: str = "") -> list[str]:
    """What a unit starts with these RAPPOR_OPTIONS, with the places of this machine."""
    text = (DEPLOY / "systemd" / name).read_text(encoding="utf-8")
    found = []
    for line in re.findall(r"^ExecStart=(.+)$", text, re.MULTILINE):
        line = re.sub(r"\$+RAPPOR_OPTIONS", options, line).replace("%%", "%").replace("$$", "$")
        line = line.replace("/opt/rappor/bin/rappor", " ".join(COMMAND))
        line = line.replace("/var/lib/rappor-backups", str(folder / "backups"))
        line = line.replace("/var/lib/rappor", str(folder / "data"))
        found.append(line.replace("/etc/rappor/collections", str(folder / "collections")))
    return found


@pytest.mark.slow
def test_the_units_of_collector_and_backup_do_their_work(tmp_path: Path) -> None:
    write_collections(tmp_path)
    (tmp_path / "backups").mkdir()
    (collect,) = unit_commands("rappor-collector.service", tmp_path)
    process = Process([*collect.split(), "--port=0"])
    try:
        process.wait_until_listening()
        with client_of(process) as client:
            assert client.deliver(batch()).status == 204
        save, forget = unit_commands("rappor-backup.service", tmp_path)
        for command in (save, forget):
            done = run(["/bin/sh", "-c", command])
            assert done.returncode == 0, done.stderr
        (backup,) = (tmp_path / "backups").iterdir()
        os.utime(backup, (0, 0))
        assert run(["/bin/sh", "-c", forget]).returncode == 0
        assert list((tmp_path / "backups").iterdir()) == []  # the old one is deleted
        assert process.end() == 0
    finally:
        process.close()


@pytest.mark.slow
def test_the_units_do_their_work_on_a_database(stack: Stack, tmp_path: Path) -> None:
    """With the roles that docs/operate.md, "On servers with systemd", gives them."""
    write_collections(tmp_path)
    (tmp_path / "backups").mkdir()
    options = {
        role: stack.local(f"--store postgresql://{role}:{PASSWORDS[name]}@postgres/rappor")
        for role, name in (("rappor_ingest", "INGEST"), ("rappor", "POSTGRES"))
    }
    own = f"{options['rappor_ingest']} --data {tmp_path / 'data' / 'collector'} --port=0"
    (collect,) = unit_commands("rappor-collector.service", tmp_path, own)
    process = Process(collect.split())
    try:
        process.wait_until_listening()
        with client_of(process) as client:
            assert client.deliver(batch()).status == 204
        assert process.end() == 0
    finally:
        process.close()
    (retain,) = unit_commands("rappor-retain.service", tmp_path, options["rappor"])
    save, _ = unit_commands("rappor-backup.service", tmp_path, options["rappor"])
    for command in (retain, save):
        done = run(["/bin/sh", "-c", command])
        assert done.returncode == 0, done.stderr
    (backup,) = (tmp_path / "backups").iterdir()
    assert backup.stat().st_size > 0


@pytest.mark.long
@pytest.mark.parametrize("name", ["rappor.service", "rappor-dashboard.service"])
def test_the_units_with_a_dashboard_serve_it(name: str, tmp_path: Path) -> None:
    write_collections(tmp_path)
    (tmp_path / "data").mkdir(mode=0o700)
    (command,) = unit_commands(name, tmp_path)
    option = "--dashboard-port" if name == "rappor.service" else "--port"
    with held_port() as port:
        more = [f"{option}={port}", *(["--port=0"] if name == "rappor.service" else [])]
        process = DashboardProcess([*command.split(), *more])
        try:
            process.wait_until_listening()
            with client_of(process) as client:
                assert client.get("/login").status == 200
            assert process.end() == 0
        finally:
            process.close()
