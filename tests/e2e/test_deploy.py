"""The files in deploy/ fit the program, and the tools that read them accept them."""

import configparser
import dataclasses
import datetime
import json
import operator
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from rappor.cli.main import build_parser
from rappor.collection import Collection
from rappor.dashboard.forms import LIST_BYTES
from rappor.wire.protocol import MAX_BODY, PROBLEMS, REPORTS_PATH
from support.collecting import PARAMS, batch, client_of, collector, today, write_collections

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
GUIDE = (ROOT / "docs" / "operate.md").read_text(encoding="utf-8")
BOARD_FILE = DEPLOY / "grafana" / "rappor-collectors.json"
BOARD: dict[str, Any] = json.loads(BOARD_FILE.read_text(encoding="utf-8"))
RULES_FILE = DEPLOY / "prometheus" / "rappor-alerts.yml"
RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load(RULES_FILE.read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
]
UNITS = sorted((DEPLOY / "systemd").glob("rappor*"))
DROP_IN = DEPLOY / "systemd" / "database.conf"
SITES = sorted((DEPLOY / "nginx").iterdir())


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, timeout=300
    )


def test_every_file_is_named_in_the_guide() -> None:
    files = [path for path in DEPLOY.rglob("*") if path.is_file()]
    assert len(files) >= 8
    assert [path.name for path in files if path.name not in GUIDE] == []


# Prometheus.


@pytest.fixture(scope="module")
def metrics_page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What a collector that has taken and refused a batch tells Prometheus."""
    with collector(tmp_path_factory.mktemp("metrics")) as process, client_of(process) as client:
        assert client.deliver(batch()).status == 204
        assert client.send(batch(collection="none")).code == "unknown-collection"
        return client.get("/metrics").body.decode()


def check_expression(expression: str, page: str) -> set[str]:
    """Parse a query; its metrics, which the page has to have with the labels of the query."""
    promql_parser.parse(expression)
    named = set(re.findall(r"\brappor_\w+", expression))
    assert named <= set(re.findall(r"^(rappor_\w+)", page, re.MULTILINE)), expression
    for name, values in re.findall(r'(\w+)=~?"([^"]+)"', expression):
        if name == "code":
            assert set(values.split("|")) <= set(PROBLEMS), expression
        elif name not in ("job", "instance"):  # these are Prometheus's own
            assert f'{name}="{values}"' in page, expression
    return named


def test_every_metric_and_label_of_an_alert_is_on_the_page_of_a_collector(
    metrics_page: str,
) -> None:
    for rule in RULES:
        assert check_expression(rule["expr"], metrics_page) or rule["alert"] == "RapporDown"
    with pytest.raises(ValueError, match="bracket"):
        promql_parser.parse("rate(rappor_reports_total[5m)")


COMPARISONS = {">": operator.gt, "<": operator.lt, "==": operator.eq}


def firing(page: str) -> dict[str, bool]:
    """Whether each alert that compares one metric with a number is true of a page of metrics."""
    found = {}
    for rule in RULES:
        parsed = promql_parser.parse(rule["expr"])
        if (
            isinstance(parsed, promql_parser.BinaryExpr)
            and isinstance(parsed.lhs, promql_parser.VectorSelector)
            and isinstance(parsed.rhs, promql_parser.NumberLiteral)
        ):
            labels = [f'{one.name}="{one.value}"' for one in parsed.lhs.matchers.matchers]
            values = [
                float(line.rpartition(" ")[2])
                for line in page.splitlines()
                if re.match(rf"{parsed.lhs.name}[{{ ]", line) and all(one in line for one in labels)
            ]
            holds = COMPARISONS[str(parsed.op)]
            found[rule["alert"]] = any(holds(value, parsed.rhs.val) for value in values)
    return found


def test_an_alert_fires_on_the_page_of_a_collector_in_that_state(
    metrics_page: str, tmp_path: Path
) -> None:
    """Prometheus itself adds `up`: whether the collector answered."""
    answered, silent = (f'up{{job="rappor"}} {number}\n' for number in (1, 0))
    quiet = firing(metrics_page + answered)
    assert quiet == dict.fromkeys(
        ("RapporDown", "RapporUnhealthy", "RapporCollectionExpires"), False
    )
    assert firing(silent) == quiet | {"RapporDown": True}
    ends = today() + datetime.timedelta(days=2)  # not tomorrow: midnight may pass
    homepage = dataclasses.replace(Collection("homepage", 1, PARAMS), expires=ends)
    write_collections(tmp_path, homepage)
    with collector(tmp_path) as process, client_of(process) as client:
        page = client.get("/metrics").body.decode()
    assert firing(page + answered) == quiet | {"RapporCollectionExpires": True}


def test_every_query_of_the_grafana_dashboard_can_be_answered(metrics_page: str) -> None:
    shown = set()
    for panel in BOARD["panels"]:
        for target in panel["targets"]:
            shown |= check_expression(target["expr"].replace("$job", "rappor"), metrics_page)
            for label in re.findall(r"{{(\w+)}}", target["legendFormat"]):
                assert label == "instance" or f"{label}=" in metrics_page
    there = set(re.findall(r"^# TYPE (rappor_\w+)", metrics_page, re.MULTILINE))
    missing = {name for name in there if not any(metric.startswith(name) for metric in shown)}
    assert missing == set()  # everything that a collector counts can be seen


def test_the_grafana_dashboard_has_the_form_that_grafana_reads() -> None:
    assert {"uid", "title", "schemaVersion", "panels", "templating", "time"} <= set(BOARD)
    assert "id" not in BOARD  # Grafana gives it one; the uid makes links stable
    panels = BOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = set()
    for panel in panels:
        assert panel["type"] in ("stat", "timeseries")
        assert panel["description"].endswith(".")
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (x, y) not in places, panel["title"]
                places.add((x, y))
    variables = {variable["name"] for variable in BOARD["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(panels)))
    assert used == variables


def test_every_alert_says_how_bad_it_is_and_what_to_do_and_is_in_the_guide() -> None:
    for rule in RULES:
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert len(rule["annotations"]["action"]) > 20
        assert rule["annotations"]["summary"].endswith(".")
    told = re.findall(r"^\| `(Rappor\w+)` \|", GUIDE, re.MULTILINE)
    assert told == [rule["alert"] for rule in RULES]


def test_the_rules_have_the_form_that_prometheus_reads() -> None:
    """promtool, where it is installed, also parses the expressions."""
    assert len({rule["alert"] for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert re.fullmatch(r"(\d+[smhdw])+", rule.get("for", "0s")), rule["alert"]
        for opening, closing in ("()", "[]", "{}"):
            assert rule["expr"].count(opening) == rule["expr"].count(closing), rule["alert"]
        assert rule["expr"].count('"') % 2 == 0, rule["alert"]
        for text in (*rule["labels"].values(), *rule["annotations"].values()):
            assert isinstance(text, str)
            assert text.count("{{") == text.count("}}"), rule["alert"]
    if shutil.which("promtool") is not None:
        done = run("promtool", "check", "rules", RULES_FILE)
        assert done.returncode == 0, done.stdout + done.stderr


# systemd.


def unit(path: Path) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(strict=False, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(path, encoding="utf-8")
    return parser


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_unit_starts_a_command_that_exists(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for line in re.findall(r"/opt/rappor/bin/rappor ([^'\n]*)", text):
        options = re.sub(r"\$\$\(.*?\)", "now", re.sub(r"\$+RAPPOR_OPTIONS", "", line)).split()
        build_parser().parse_args(options)
    for given in re.findall(r"RAPPOR_OPTIONS=(.+)", text):
        verb = "serve" if path.stem == "rappor" else path.stem.removeprefix("rappor-")
        verb = {"collector": "collect"}.get(verb, verb)
        fixed = ["--data", "d", "--collections", "c"]
        build_parser().parse_args([verb, *fixed, *given.split()])


@pytest.mark.parametrize(
    "path", [path for path in UNITS if path.suffix == ".service"], ids=lambda path: path.name
)
def test_a_service_has_a_user_and_cannot_write_elsewhere(path: Path) -> None:
    service = unit(path)["Service"]
    assert service["User"] == "rappor"
    assert service["StateDirectory"].split()[0] == "rappor"
    for setting in ("NoNewPrivileges", "ProtectHome", "PrivateTmp", "PrivateDevices"):
        assert service[setting] == "yes"
    assert service["ProtectSystem"] == "strict"
    if service.get("Type") != "oneshot":
        assert service["LimitCORE"] == "0"
        assert service["RestartPreventExitStatus"] == "2 3"


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_unit_has_the_form_that_systemd_reads(path: Path) -> None:
    """systemd-analyze, where it is installed, also knows the names of the settings."""
    sections = {".service": {"Unit", "Service"}, ".timer": {"Unit", "Timer"}}[path.suffix]
    assert sections <= set(unit(path).sections()) <= {*sections, "Install"}
    text = path.read_text(encoding="utf-8").replace("\\\n", " ")
    for line in text.splitlines():
        assert re.fullmatch(r"|#.*|\[[A-Z]\w+\]|[A-Z]\w+=.*", line), line
    if shutil.which("systemd-analyze") is None:
        return
    said = run("systemd-analyze", "verify", path).stderr.splitlines()
    missing = "Command /opt/rappor/bin/rappor is not executable"  # it is not installed here
    assert [line for line in said if missing not in line] == []


DATABASE_UNITS = [path for path in UNITS if path.suffix == ".service" and path.stem != "rappor"]


def merged(path: Path) -> configparser.RawConfigParser:
    """A service with the drop-in for databases; rappor-retain.service has all of it itself."""
    parser = unit(path)
    if path.stem != "rappor-retain":
        parser.read(DROP_IN, encoding="utf-8")
    return parser


@pytest.mark.parametrize("path", DATABASE_UNITS, ids=lambda path: path.name)
def test_a_service_with_a_database_can_reach_it_and_has_its_password(path: Path) -> None:
    with_database = merged(path)
    service = with_database["Service"]
    assert service.get("PrivateNetwork", "no") == "no"
    assert {"AF_INET", "AF_INET6", "AF_UNIX"} <= set(service["RestrictAddressFamilies"].split())
    assert "network-online.target" in with_database["Unit"]["After"].split()
    assert "network-online.target" in with_database["Unit"]["Wants"].split()
    name = path.stem.removeprefix("rappor-")
    assert service["EnvironmentFile"].removeprefix("-") == f"/etc/rappor/{name}-options"
    assert f"/etc/rappor/{name}-options" in GUIDE


def test_the_drop_in_has_the_form_that_systemd_reads(tmp_path: Path) -> None:
    assert set(unit(DROP_IN).sections()) == {"Unit", "Service"}
    if shutil.which("systemd-analyze") is None:
        return
    for text, complaints in ((DROP_IN.read_text(), 0), ("[Service]\nPrivateNet=no\n", 1)):
        place = tmp_path / "rappor-backup.service.d"
        place.mkdir(exist_ok=True)
        (place / "database.conf").write_text(text)
        file = shutil.copy(DEPLOY / "systemd" / "rappor-backup.service", tmp_path)
        said = run("systemd-analyze", "verify", file).stderr.splitlines()
        assert len([line for line in said if "database.conf" in line]) == complaints


# nginx.


def test_only_reports_reach_the_collector_and_no_address_reaches_a_file() -> None:
    text = (DEPLOY / "nginx" / "rappor-collector.conf").read_text(encoding="utf-8")
    assert re.findall(r"location (.+?) \{", text) == [f"= {REPORTS_PATH}", "/"]
    assert "location / { return 404; }" in text
    assert "access_log off;" in text
    assert "error_log /dev/null crit;" in text
    assert f"client_max_body_size {MAX_BODY // 1024}k;" in text
    for header in ("User-Agent", "Cookie", "Referer"):
        assert f'proxy_set_header {header} "";' in text


def test_the_dashboards_proxy_passes_the_host_and_lists_of_candidates() -> None:
    text = (DEPLOY / "nginx" / "rappor-dashboard.conf").read_text(encoding="utf-8")
    assert "proxy_set_header Host $host;" in text
    assert f"client_max_body_size {LIST_BYTES // 2**20}m;" in text
    assert "access_log off;" in text  # one-time links are in addresses


@pytest.mark.parametrize("path", SITES, ids=lambda path: path.name)
def test_a_site_has_balanced_blocks_and_a_certificate_of_its_name(path: Path) -> None:
    text = re.sub(r"#.*", "", path.read_text(encoding="utf-8"))
    assert text.count("{") == text.count("}")
    for line in filter(None, map(str.strip, text.splitlines())):
        assert line.endswith((";", "{", "}")), line
    (name,) = re.findall(r"server_name (\S+);", text)
    assert f"/etc/letsencrypt/live/{name}/fullchain.pem;" in text
    assert "TLSv1.2 TLSv1.3;" in text


def test_both_sites_go_together(tmp_path: Path) -> None:
    """nginx, where it is installed, also knows the names of the directives."""
    sites = "\n".join(path.read_text(encoding="utf-8") for path in SITES)
    for name in (r"upstream (\w+)", r"zone=(\w+):", r"server_name (\S+);"):
        named = re.findall(name, sites)
        assert len(set(named)) == len(named) > 0
    upstreams = set(re.findall(r"upstream (\w+)", sites))
    assert set(re.findall(r"proxy_pass http://(\w+)", sites)) == upstreams
    assert set(re.findall(r"limit_conn (\w+)", sites)) == set(re.findall(r"zone=(\w+):", sites))
    if shutil.which("nginx") is not None:
        check_with_nginx(sites, tmp_path)


def check_with_nginx(sites: str, tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    made += ["-nodes", "-subj", "/CN=reports.example.org", "-keyout", str(key), "-out", str(cert)]
    assert run(*made).returncode == 0
    sites = re.sub(r"/etc/letsencrypt/live/\S+/fullchain.pem", str(cert), sites)
    sites = re.sub(r"/etc/letsencrypt/live/\S+/privkey.pem", str(key), sites)
    paths = "\n".join(
        f"{name}_temp_path {tmp_path};"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    whole = tmp_path / "nginx.conf"
    whole.write_text(f"pid {tmp_path}/pid;\nevents {{}}\nhttp {{\n{paths}\n{sites}\n}}\n")
    done = run("nginx", "-t", "-e", tmp_path / "error.log", "-c", whole)
    assert done.returncode == 0, done.stderr
