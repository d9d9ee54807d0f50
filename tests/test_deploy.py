"""Files of `deploy/` fit each other and the package."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from streamdp.config import load

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"


@pytest.mark.parametrize("place", ["container", "kubernetes"])
def test_the_configuration_is_valid(place: str, tmp_path: Path) -> None:
    """As it stands, once its token is there."""
    text = (DEPLOY / place / "config.yaml").read_text()
    (tmp_path / "token").write_text("0123456789abcdef0123456789abcdef")
    found = re.search(r"token: \{file: (\S+)\}", text)
    assert found is not None
    path = tmp_path / "config.yaml"
    path.write_text(text.replace(found[1], str(tmp_path / "token")))
    configuration = load(path)
    assert configuration.store.path.parent == Path("/var/lib/streamdp")
    assert configuration.store.anchor is not None
    assert configuration.store.anchor.parent != configuration.store.path.parent


def test_the_image_is_built_from_what_its_context_holds() -> None:
    """What is copied exists and is not ignored."""
    text = (DEPLOY / "container" / "Dockerfile").read_text()
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().split() if line[0] == "!"}
    copied = {
        name
        for line in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE)
        for name in line.split()
    }
    assert copied <= kept
    assert all((ROOT / name).exists() for name in copied)
    (extras,) = re.findall(r"^ARG EXTRAS=(\S+)$", text, re.MULTILINE)
    project = (ROOT / "pyproject.toml").read_text()
    assert all(re.search(rf"^{extra} = \[", project, re.MULTILINE) for extra in extras.split(","))


def manifest(name: str) -> Any:
    return yaml.safe_load((DEPLOY / "kubernetes" / name).read_text())


def test_manifests_speak_of_one_pod_with_two_volumes() -> None:
    """Selectors match, each volume is mounted where the configuration expects it."""
    resources = manifest("kustomization.yaml")["resources"]
    assert sorted(path.name for path in (DEPLOY / "kubernetes").glob("*.yaml")) == sorted(
        [*resources, "config.yaml", "kustomization.yaml"]
    )
    workload = manifest("statefulset.yaml")["spec"]
    labels = workload["template"]["metadata"]["labels"]
    assert workload["replicas"] == 1
    assert workload["selector"]["matchLabels"] == labels
    assert manifest("service.yaml")["spec"]["selector"] == labels
    for name in ("networkpolicy.yaml", "poddisruptionbudget.yaml"):
        spec = manifest(name)["spec"]
        assert (spec.get("podSelector") or spec["selector"])["matchLabels"] == labels
    mounts = {
        mount["name"]: mount["mountPath"]
        for mount in workload["template"]["spec"]["containers"][0]["volumeMounts"]
    }
    claims = [claim["metadata"]["name"] for claim in workload["volumeClaimTemplates"]]
    assert [mounts[name] for name in claims] == ["/var/lib/streamdp", "/var/lib/streamdp-anchor"]


def test_compose_mounts_files_that_are_there() -> None:
    """Every bind is a file of the repository, every volume is declared."""
    composed = yaml.safe_load((DEPLOY / "container" / "compose.yaml").read_text())
    for service in composed["services"].values():
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            if source.startswith("."):
                assert (DEPLOY / "container" / source).exists(), source
            else:
                assert source in composed["volumes"]
        assert set(service.get("secrets", ())) <= set(composed["secrets"])


UNITS = sorted((DEPLOY / "systemd").glob("*.service"))


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_units_do_not_restart_what_a_restart_does_not_mend(unit: Path) -> None:
    """A cap, a lock and damage are states; secrets never stand in a unit."""
    text = unit.read_text()
    assert "Type=oneshot" in text or "RestartPreventExitStatus=2 3 5 6" in text
    assert "NoNewPrivileges=yes" in text
    assert not re.search(r"^Environment=", text, re.MULTILINE)
