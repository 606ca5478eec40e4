"""Files that other services read, by their schemas: workflows, forms, hooks, the citation."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
SCHEMAS = {  # those that check-jsonschema brings: no network is needed
    "CITATION.cff": "citation-file-format",
    ".github/workflows/ci.yml": "github-workflows",
    ".github/workflows/release.yml": "github-workflows",
    ".github/ISSUE_TEMPLATE/bug.yml": "github-issue-forms",
    ".github/ISSUE_TEMPLATE/idea.yml": "github-issue-forms",
    ".github/ISSUE_TEMPLATE/config.yml": "github-issue-config",
}
CI = yaml.safe_load((GITHUB / "workflows/ci.yml").read_text(encoding="utf-8"))


def checked(schema: str, file: Path) -> subprocess.CompletedProcess[str]:
    command = (
        sys.executable,
        "-m",
        "check_jsonschema",
        "--builtin-schema",
        f"vendor.{schema}",
        file,
    )
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_file_fits_its_schema(name: str) -> None:
    done = checked(SCHEMAS[name], ROOT / name)
    assert done.returncode == 0, done.stdout


def test_a_file_that_does_not_fit_is_noticed(tmp_path: Path) -> None:
    wrong = tmp_path / "ci.yml"
    wrong.write_text("on: push\njobs: {test: {steps: [{run: make test}]}}\n")  # runs on nothing
    assert checked("github-workflows", wrong).returncode == 1


def test_every_file_for_github_is_checked() -> None:
    there = {str(path.relative_to(ROOT)) for path in GITHUB.rglob("*.yml")}
    assert there == {name for name in SCHEMAS if name.startswith(".github")}


def test_ci_runs_the_pythons_that_the_package_names() -> None:
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
        "classifiers"
    ]
    named = set(re.findall(r"Python :: (3\.\d+)", " ".join(classifiers)))
    for job in ("everything", "client"):
        assert named <= set(CI["jobs"][job]["strategy"]["matrix"]["python"])
    systems = CI["jobs"]["client"]["strategy"]["matrix"]["system"]
    assert {name.partition("-")[0] for name in systems} == {"ubuntu", "macos", "windows"}


def test_what_workflows_and_hooks_call_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for file in (GITHUB / "workflows").glob("*.yml"):
        text = file.read_text(encoding="utf-8")
        assert set(re.findall(r"run: make ([a-z-]+)$", text, re.MULTILINE)) <= targets
        for path in re.findall(r"run: python (\S+)$", text, re.MULTILINE):
            assert (ROOT / path).is_file()
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    assert [each["repo"] for each in hooks] == ["local"]  # nothing is fetched
    tools = {hook["entry"].split()[0].rpartition("/")[2] for hook in hooks[0]["hooks"]}
    assert {tool for tool in tools if shutil.which(tool, path=Path(sys.executable).parent)} == tools


def pythons() -> list[str]:
    """The supported Pythons that run here; a name may be there without a Python behind it."""
    names = [sys.executable, "python3.11", "python3.12", "python3.13", "python3.14"]
    found = {}
    for name in filter(shutil.which, names):
        said = subprocess.run([name, "-V"], capture_output=True, check=False)
        if said.returncode == 0:
            found.setdefault(said.stdout, name)
    return list(found.values())


def test_a_client_reports_on_every_python_that_is_here() -> None:
    """Of the base install: no package but rappor, found by its source."""
    start = f"import runpy, sys; sys.path.insert(0, {str(ROOT / 'src')!r})\n"
    program = (
        f"runpy.run_path({str(ROOT / 'tests/support/client_smoke.py')!r}, run_name='__main__')"
    )
    for python in pythons():
        done = subprocess.run(
            [python, "-I", "-S", "-B", "-W", "error", "-c", start + program],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert (done.returncode, done.stderr) == (0, ""), python
        assert done.stdout.endswith(": 1 report counted\n")


def test_a_release_attests_where_its_files_and_its_bill_come_from() -> None:
    workflow = yaml.safe_load((GITHUB / "workflows/release.yml").read_text(encoding="utf-8"))
    job = workflow["jobs"]["build"]
    assert job["permissions"] == {
        "contents": "read",
        "id-token": "write",
        "attestations": "write",
    }
    steps = {step.get("uses", "").partition("@")[0]: step.get("with") for step in job["steps"]}
    order = [step.get("run", step.get("uses", "")) for step in job["steps"]]
    assert order.index("make dist") < order.index("actions/attest-build-provenance@v2")
    assert steps["actions/attest-build-provenance"] == {"subject-path": "dist/*"}
    assert steps["actions/attest-sbom"]["subject-path"] == "dist/*.whl"
    named = re.search(r"steps\.(\w+)\.outputs", steps["actions/attest-sbom"]["sbom-path"])
    assert named is not None
    (bill,) = (step["run"] for step in job["steps"] if step.get("id") == named[1])
    assert "dist/*.cdx.json" in bill


def test_what_the_guide_to_releases_calls_frozen_is_there() -> None:
    guide = (ROOT / "docs" / "release.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(tests/[\w./-]+)`", guide))
    assert {"tests/vectors/rappor-v1.json", "tests/vectors/dialects.json"} <= named
    assert {name for name in named if not (ROOT / name).exists()} == set()
