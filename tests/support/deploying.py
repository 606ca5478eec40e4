"""The files in deploy/, read: services of compose, manifests of Kubernetes, steps of the image."""

import functools
import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
DOCKERFILE = DEPLOY / "docker" / "Dockerfile"
COMPOSE_FILE = DEPLOY / "docker" / "compose.yaml"
KUBERNETES = DEPLOY / "kubernetes"

Document = dict[str, Any]


@functools.cache
def compose() -> Document:
    """The compose file."""
    read: Document = yaml.safe_load(COMPOSE_FILE.read_text(encoding="utf-8"))
    return read


def command_of(service: str) -> list[str]:
    """The command of a service, as compose passes it to the image."""
    return [str(word) for word in compose()["services"][service]["command"]]


@functools.cache
def documents(file: Path) -> list[Document]:
    """The documents of a YAML file."""
    return list(yaml.safe_load_all(file.read_text(encoding="utf-8")))


@functools.cache
def kustomization() -> Document:
    """The kustomization."""
    (read,) = documents(KUBERNETES / "kustomization.yaml")
    return read


def manifests() -> list[Document]:
    """The manifests that the kustomization lists, in its order."""
    return [
        found for name in kustomization()["resources"] for found in documents(KUBERNETES / name)
    ]


def manifest(kind: str, name: str) -> Document:
    """One of them."""
    (found,) = (
        each for each in manifests() if (each["kind"], each["metadata"]["name"]) == (kind, name)
    )
    return found


def pod_of(name: str) -> Document:
    """The template of the pods of a deployment, or of the job that a schedule starts."""
    (found,) = (
        each
        for each in manifests()
        if (each["kind"] in ("Deployment", "CronJob") and each["metadata"]["name"] == name)
    )
    job = found["spec"].get("jobTemplate", found)
    read: Document = job["spec"]["template"]
    return read


def container(name: str) -> Document:
    """The only container of its pods."""
    (found,) = pod_of(name)["spec"]["containers"]
    read: Document = found
    return read


def settings() -> dict[str, str]:
    """The literals of the generated ConfigMap `settings`."""
    (found,) = (
        each for each in kustomization()["configMapGenerator"] if each["name"] == "settings"
    )
    pairs = (literal.split("=", 1) for literal in found["literals"])
    return dict(pairs)


def arguments_of(name: str) -> list[str]:
    """The arguments of that container, with its variables as Kubernetes replaces them."""
    found = container(name)
    values = {
        variable["name"]: settings()[variable["valueFrom"]["configMapKeyRef"]["key"]]
        for variable in found["env"]
        if "configMapKeyRef" in variable["valueFrom"]
    }
    return [re.sub(r"\$\((\w+)\)", lambda m: values[m[1]], str(word)) for word in found["args"]]


def dockerfile_steps() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile with their arguments, lines joined."""
    text = DOCKERFILE.read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [
        (word, rest)
        for word, _, rest in (line.partition(" ") for line in joined.split("\n"))
        if word
    ]
