"""A Prometheus that scrapes the page: every rule and every query of the dashboard is answered."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from streamdp.types import Json
from tests.ports import free_port
from tests.web.test_beside import wait_until

MONITORING = Path(__file__).parents[2] / "deploy" / "monitoring"

pytestmark = pytest.mark.skipif(
    shutil.which("prometheus") is None, reason="there is no prometheus: apt-get install prometheus"
)


@pytest.fixture(scope="module")
def prometheus(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its address, once it has scraped a page twice."""
    place, page, port = tmp_path_factory.mktemp("prometheus"), free_port(), free_port()
    scraped = {"job_name": "streamdp", "static_configs": [{"targets": [f"127.0.0.1:{page}"]}]}
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(MONITORING / "alerts.yaml")],
        "scrape_configs": [scraped],
    }
    (place / "prometheus.yaml").write_text(yaml.safe_dump(config))
    served = home / "scraped.yaml"
    listen = f"web: {{listen: 127.0.0.1:{page}}}"
    served.write_text(f"{(home / 'config.yaml').read_text()}\n{listen}\n")
    shown = [sys.executable, "-m", "streamdp", "web", "-c", str(served)]
    stored = [f"--config.file={place}/prometheus.yaml", f"--storage.tsdb.path={place}/data"]
    asked = ["prometheus", *stored, f"--web.listen-address=127.0.0.1:{port}"]
    address = f"http://127.0.0.1:{port}"
    with (
        (place / "log").open("wb") as log,
        subprocess.Popen(shown, stderr=log) as streamdp,
        subprocess.Popen(asked, stderr=log) as server,
    ):
        try:
            wait_until(f"http://127.0.0.1:{page}/metrics", there=True)
            wait_until(f"{address}/-/ready", there=True)
            until = time.monotonic() + 600
            while not results(address, "count_over_time(streamdp_jobs[1h]) >= 2"):
                assert time.monotonic() < until, "the page is not scraped"
                time.sleep(0.2)
            yield address
        finally:
            streamdp.terminate()
            server.terminate()
            served.unlink()


def got(address: str) -> Json:
    with urllib.request.urlopen(address, timeout=30) as answer:  # noqa: S310
        found: Json = json.load(answer)
    assert found["status"] == "success"
    return found["data"]


def results(address: str, expression: str) -> list[Json]:
    """What a query finds now."""
    asked = urllib.parse.urlencode({"query": expression})
    found: list[Json] = got(f"{address}/api/v1/query?{asked}")["result"]
    return found


def test_each_panel_shows_something(prometheus: str) -> None:
    """Every query of the dashboard is answered, with the labels that its legend names."""
    panels = json.loads((MONITORING / "grafana.json").read_text())["panels"]
    targets = [target for panel in panels for target in panel["targets"]]
    assert len(targets) > 15
    for target in targets:
        found = results(prometheus, target["expr"].removesuffix("> 0"))
        assert found, target["expr"]
        for legend in target["legendFormat"].split("{{")[1:]:
            name = legend.split("}}")[0].strip()
            assert all(name in each["metric"] for each in found), (target["expr"], name)


def test_each_rule_is_evaluated(prometheus: str) -> None:
    """None ends in an error; what a healthy store shows fires nothing at once."""
    until = time.monotonic() + 600
    while any(rule["health"] == "unknown" for rule in rules(prometheus)):
        assert time.monotonic() < until, "the rules are not evaluated"
        time.sleep(0.2)
    assert len(rules(prometheus)) > 5
    assert [rule for rule in rules(prometheus) if rule["health"] != "ok"] == []


def rules(address: str) -> list[Json]:
    """All rules, each with how its last evaluation ended."""
    groups = got(f"{address}/api/v1/rules")["groups"]
    return [rule for group in groups for rule in group["rules"]]
