"""The image, the compose file and the manifests fit their schemas and what tools demand."""

import copy
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from check_jsonschema.builtin_schemas import get_builtin_schema

from rappor import __version__
from rappor.cli.main import build_parser
from rappor.collection import Collection
from rappor.wire.protocol import MAX_BODY, REPORTS_PATH
from support.deploying import (
    COMPOSE_FILE,
    DEPLOY,
    DOCKERFILE,
    KUBERNETES,
    Document,
    arguments_of,
    command_of,
    compose,
    container,
    dockerfile_steps,
    kustomization,
    manifest,
    manifests,
    pod_of,
    settings,
)

OURS = ("collector-1", "collector-2", "dashboard", "retain", "schema")  # services of the image
PINNED = "1.33"  # an old version of Kubernetes that the manifests fit, and the latest


def run(*command: str | Path, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        **more,
    )


# The image.


def hadolint(file: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("hadolint")
    return run(program, "--no-color", "--failure-threshold", "style", file)


def test_the_linter_of_dockerfiles_has_nothing_to_say(tmp_path: Path) -> None:
    done = hadolint(DOCKERFILE)
    assert (done.returncode, done.stdout) == (0, "")
    worse = tmp_path / "Dockerfile"
    worse.write_text(DOCKERFILE.read_text(encoding="utf-8").replace(":3.13-slim-bookworm", ""))
    assert "DL3006" in hadolint(worse).stdout  # it would say so


def test_the_image_runs_as_a_user_without_rights_and_says_how_it_is() -> None:
    steps = dockerfile_steps()
    assert [word for word, _ in steps].count("FROM") == 2
    last = steps[max(index for index, step in enumerate(steps) if step[0] == "FROM") :]
    words = [word for word, _ in last]
    assert "RUN" not in words  # nothing is installed or downloaded in the stage that ships
    assert dict(last)["USER"] == "10001:10001"
    assert words.index("USER") < words.index("ENTRYPOINT")
    assert "HEALTHCHECK" in words
    assert json.loads(dict(last)["ENTRYPOINT"]) == ["rappor"]


def test_everything_in_the_image_is_checked_by_its_hash() -> None:
    (step,) = (rest for word, rest in dockerfile_steps() if word == "RUN")
    commands = step.split(" && ")
    assert commands[0] == "sha256sum --check --strict SHA256SUMS"
    for command in commands:
        if "pip install" in command:
            assert "--require-hashes" in command or "--no-index --no-deps" in command


def test_all_files_name_the_version_of_the_package() -> None:
    (image,) = kustomization()["images"]
    assert image["newTag"] == __version__
    assert {compose()["services"][name]["image"] for name in OURS} == {f"rappor:{__version__}"}
    assert f"-t rappor:{__version__} dist" in DOCKERFILE.read_text(encoding="utf-8")


# Compose.


def test_the_compose_file_fits_the_compose_specification() -> None:
    schema = get_builtin_schema("vendor.compose-spec")
    validator = jsonschema.validators.validator_for(schema)(schema)
    validator.validate(compose())
    wrong = copy.deepcopy(compose())
    wrong["services"]["dashboard"]["readonly"] = True
    assert not validator.is_valid(wrong)


def test_names_in_the_compose_file_exist() -> None:
    file = compose()
    for name, service in file["services"].items():
        for other in service.get("depends_on", {}):
            assert other in file["services"], name
        assert set(service["networks"]) <= set(file["networks"]), name
        assert set(service.get("secrets", ())) <= set(file["secrets"]), name
        for mount in service.get("volumes", ()):
            source = mount.split(":")[0]
            if not source.startswith("."):
                assert source in file["volumes"], name
            elif source not in ("./collections",):  # that one is the operator's
                assert (COMPOSE_FILE.parent / source).is_file(), name
    build = file["x-rappor"]["build"]
    context = (COMPOSE_FILE.parent / build["context"]).resolve()
    assert (context / build["dockerfile"]).resolve() == DOCKERFILE  # relative to the context


def test_services_write_only_where_they_must() -> None:
    for name in (*OURS, "nginx"):
        service = compose()["services"][name]
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name


def test_no_password_is_in_the_file_or_in_a_command() -> None:
    services = compose()["services"]
    for name, service in services.items():
        for variable, value in service.get("environment", {}).items():
            if "PASSWORD" in variable:
                assert re.fullmatch(r"\$\{[A-Z]+_PASSWORD:\?\}", value), name
        assert "PASSWORD" not in " ".join(map(str, service.get("command", ()))), name
    assert services["collector-1"] == services["collector-2"]
    assert services["collector-1"]["environment"] != services["dashboard"]["environment"]


def test_only_nginx_can_be_reached_and_it_logs_nothing() -> None:
    services = compose()["services"]
    assert [name for name, service in services.items() if "ports" in service] == ["nginx"]
    assert "logging" not in services["nginx"]  # so that what keeps it from starting can be read
    assert "database" not in services["nginx"]["networks"]
    assert compose()["networks"]["database"] == {"internal": True}
    text = (DEPLOY / "docker" / "nginx.conf").read_text(encoding="utf-8")
    assert "access_log off;" in text
    assert "error_log /dev/null crit;" in text
    assert re.findall(r"location (.+?) \{", text) == [f"= {REPORTS_PATH}", "/", "/"]
    assert f"client_max_body_size {MAX_BODY // 1024}k;" in text
    for header in ("User-Agent", "Cookie", "Referer"):
        assert f'proxy_set_header {header} "";' in text
    collectors = re.findall(r"server (collector-\d):8765 resolve;", text)
    assert collectors == [name for name in services if name.startswith("collector")]


# Kubernetes.

NAMES = [f"{each['kind']}/{each['metadata']['name']}" for each in manifests()]


@pytest.mark.parametrize("version", [PINNED, kubernetes_validate.latest_version()])
def test_manifests_fit_the_schemas_of_kubernetes(version: str) -> None:
    for found in manifests():
        kubernetes_validate.validate(found, version, strict=True)
    wrong = copy.deepcopy(manifest("Deployment", "collector"))
    wrong["spec"]["template"]["spec"]["containers"][0]["readyProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, version, strict=True)


def test_the_kustomization_lists_every_file() -> None:
    listed = {*kustomization()["resources"], "kustomization.yaml"}
    for generator in kustomization()["configMapGenerator"]:
        listed |= set(generator.get("files", ()))
    there = {str(path.relative_to(KUBERNETES)) for path in KUBERNETES.rglob("*") if path.is_file()}
    assert listed == there
    known = {"apiVersion", "kind", "namespace", "resources", "images", "configMapGenerator"}
    assert set(kustomization()) <= known
    for file in KUBERNETES.glob("collections/*.toml"):
        Collection.read(file)


def test_kustomize_makes_the_manifests() -> None:
    """kubectl, where it is installed, builds what it would apply."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    done = run("kubectl", "kustomize", KUBERNETES)
    assert done.returncode == 0, done.stderr
    built: list[Document] = list(yaml.safe_load_all(done.stdout))
    assert len(built) == len(manifests()) + len(kustomization()["configMapGenerator"])
    for found in built:
        kubernetes_validate.validate(found, PINNED, strict=True)
    for found in built:
        if found["kind"] == "Deployment":
            (made,) = found["spec"]["template"]["spec"]["containers"]
            assert made["image"] == f"registry.example.org/rappor:{__version__}"
    assert {found["metadata"].get("namespace", "rappor") for found in built} == {"rappor"}


def test_pods_have_no_rights_and_a_root_that_cannot_be_written() -> None:
    for name in ("collector", "dashboard", "retain"):
        pod = pod_of(name)["spec"]
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert f"{pod['securityContext']['runAsUser']}:" in dict(dockerfile_steps())["USER"]
        security = container(name)["securityContext"]
        assert security["readOnlyRootFilesystem"] is True
        assert security["allowPrivilegeEscalation"] is False
        assert security["capabilities"] == {"drop": ["ALL"]}
        probes = {"readinessProbe", "livenessProbe", "startupProbe"}
        assert len(probes & set(container(name))) == (0 if name == "retain" else 3)
        assert {"requests", "limits"} <= set(container(name)["resources"])
    space = manifest("Namespace", "rappor")["metadata"]["labels"]
    assert space["pod-security.kubernetes.io/enforce"] == "restricted"


def references(found: object) -> Iterator[tuple[str, str]]:
    """The ConfigMaps and Secrets, with their keys, that a manifest takes values from."""
    if isinstance(found, list):
        for each in found:
            yield from references(each)
    elif isinstance(found, dict):
        for kind in ("configMapKeyRef", "secretKeyRef"):
            if kind in found:
                yield f"{kind}/{found[kind]['name']}", found[kind]["key"]
        if "secretName" in found and "items" in found:
            yield f"secretKeyRef/{found['secretName']}", found["items"][0]["key"]
        for each in found.values():
            yield from references(each)


def test_names_in_the_manifests_exist() -> None:
    steps = (KUBERNETES / "kustomization.yaml").read_text(encoding="utf-8")
    for name in ("collector", "dashboard", "retain"):
        for source, key in references(pod_of(name)):
            if source == "configMapKeyRef/settings":
                assert key in settings()
            else:
                secret = source.removeprefix("secretKeyRef/")
                (line,) = re.findall(rf"secret generic {secret} ((?:\\\n|.)*)", steps)
                assert f"={key}" in line or f"literal={key}=" in line
    labels = {name: pod_of(name)["metadata"]["labels"] for name in ("collector", "dashboard")}
    for name, given in labels.items():
        assert manifest("Deployment", name)["spec"]["selector"]["matchLabels"] == given
        assert manifest("Service", name)["spec"]["selector"] == given
    labels["retain"] = pod_of("retain")["metadata"]["labels"]
    for name, given in labels.items():
        assert manifest("NetworkPolicy", name)["spec"]["podSelector"]["matchLabels"] == given
    assert len({str(given) for given in labels.values()}) == len(labels)
    budget = manifest("PodDisruptionBudget", "collector")["spec"]["selector"]["matchLabels"]
    assert budget == labels["collector"]
    scaler = manifest("HorizontalPodAutoscaler", "collector")["spec"]
    assert scaler["scaleTargetRef"]["name"] == "collector"
    assert scaler["metrics"][0]["resource"]["name"] == "cpu"
    assert "cpu" in container("collector")["resources"]["requests"]  # utilization is a share of it


def test_nobody_else_may_speak_to_a_pod() -> None:
    nobody = manifest("NetworkPolicy", "nobody")["spec"]
    assert nobody == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    for name in ("collector", "dashboard"):
        (rule,) = manifest("NetworkPolicy", name)["spec"]["ingress"]
        assert rule["from"]
        assert rule["ports"] == [{"port": "http"}]
    (path,) = manifest("Ingress", "collector")["spec"]["rules"][0]["http"]["paths"]
    assert (path["path"], path["pathType"]) == (REPORTS_PATH, "Exact")


# Commands.


def test_the_database_is_not_healthy_while_its_image_prepares_it() -> None:
    """The image's first server listens on a socket only, and ends when the database is made."""
    services = compose()["services"]
    assert "--host=127.0.0.1" in services["postgres"]["healthcheck"]["test"]
    for name in ("schema", "roles"):
        assert services[name]["restart"] == "on-failure"


def test_retention_runs_every_day_as_the_owner() -> None:
    """Collectors may not delete: roles.sql."""
    services = compose()["services"]
    for place in ("environment", "networks", "depends_on"):
        assert services["retain"][place]
    assert services["retain"]["environment"] == services["schema"]["environment"]
    assert services["retain"]["restart"] == "unless-stopped"
    job = manifest("CronJob", "retain")["spec"]
    assert len(job["schedule"].split()) == 5
    assert job["schedule"].endswith(" * * *")
    assert arguments_of("retain")[1].startswith("--store=postgresql://rappor@")
    for name in ("collector", "dashboard"):  # these do not have the owner's password
        assert "database-owner" not in str(manifest("Deployment", name))


def test_a_pod_that_waits_for_the_database_is_not_restarted() -> None:
    """It answers /healthz as soon as it listens; until then, it is started for hours."""
    found = container("collector")["startupProbe"]
    assert found["httpGet"]["path"] == "/healthz"
    assert found["periodSeconds"] * found["failureThreshold"] >= 12 * 3600


def test_metrics_of_pods_have_the_job_name_of_the_alerts() -> None:
    guide = (DEPLOY.parent / "docs" / "operate.md").read_text(encoding="utf-8")
    (text,) = (
        block
        for block in re.findall(r"```yaml\n(.*?)```", guide, re.S)
        if "kubernetes_sd_configs" in block
    )
    (job,) = yaml.safe_load(text)["scrape_configs"]
    assert job["job_name"] == "rappor"
    keeps = {
        rule["source_labels"][0].removeprefix("__meta_kubernetes_pod_"): rule["regex"]
        for rule in job["relabel_configs"]
        if rule.get("action") == "keep"
    }
    template = manifest("Deployment", "collector")["spec"]["template"]
    labels = template["metadata"]["labels"]
    assert keeps == {
        "label_app_kubernetes_io_component": labels["app.kubernetes.io/component"],
        "container_port_name": container("collector")["ports"][0]["name"],
    }
    assert "annotations" not in template["metadata"]  # they would scrape it twice, by another name


def test_compose_and_kubernetes_run_the_same_commands() -> None:
    """test_deploy_run.py runs those of compose."""

    def general(words: list[str]) -> list[str]:
        return [re.sub(r"@[\w.]+/rappor\?.*", "@postgres/rappor", word) for word in words]

    assert general(arguments_of("collector")) == command_of("collector-1")
    dashboard = [word for word in command_of("dashboard") if "--collector=" not in word]
    assert general(arguments_of("dashboard")) == dashboard  # a service has many collectors
    assert " ".join(["rappor", *general(arguments_of("retain"))]) in command_of("retain")[0]


@pytest.mark.parametrize("name", OURS)
def test_commands_are_known_to_the_program(name: str) -> None:
    words = command_of(name)
    if "entrypoint" in compose()["services"][name]:  # a script of the shell
        (line,) = re.findall(r"^ *rappor (.+)$", words[0], re.MULTILINE)
        words = line.split()
    build_parser().parse_args(words)
