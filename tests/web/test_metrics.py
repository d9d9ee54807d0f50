"""Metrics in both texts, and the rules and the dashboard that read them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open
from prometheus_client.parser import text_string_to_metric_families as parse
from starlette.testclient import TestClient

from streamdp.config import load
from streamdp.store.reading.reports import Spent
from streamdp.types import Json
from streamdp.web.log import EventCounts
from streamdp.web.reader import Reader

MONITORING = Path(__file__).parents[2] / "deploy" / "monitoring"
OPEN = "application/openmetrics-text; version=1.0.0"


def samples(client: TestClient) -> dict[tuple[str, ...], float]:
    """Numbers by name and values of labels."""
    text = client.get("/metrics").text
    found = (sample for family in parse(text) for sample in family.samples)
    return {(sample.name, *sample.labels.values()): sample.value for sample in found}


def test_both_texts_say_the_same(client: TestClient) -> None:
    """Each is read by its own parser of the client library."""
    answer = client.get("/metrics", headers={"Accept": OPEN})
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    families = parse_open(answer.text)  # type: ignore[no-untyped-call]
    found = (sample for family in families for sample in family.samples)
    opened = {(sample.name, *sample.labels.values()): sample.value for sample in found}
    other = samples(client)
    assert opened.keys() == other.keys()
    free = "streamdp_volume_free_bytes"  # whatever else writes to the volume changes it
    assert [each for each in opened if opened[each] != other[each] and each[0] != free] == []


def test_numbers_are_those_of_the_store(client: TestClient, home: Path) -> None:
    """Releases, charges, answers of gates, sizes."""
    found = samples(client)
    assert found["streamdp_job_releases_total", "daily"] == 2
    assert found["streamdp_job_burnt_total", "daily"] == 0
    assert found["streamdp_gate_answers_total", "yes", "daily.gate"] == 1
    assert found["streamdp_gate_answers_total", "no", "daily.gate"] == 2
    assert found["streamdp_file_bytes", "store"] == (home / "store.db").stat().st_size
    spent = found["streamdp_epsilon_spent_total", "stream"]
    cap = found["streamdp_epsilon_lifetime_cap", "stream"]
    assert found["streamdp_epsilon_left", "stream"] == pytest.approx(cap - spent)
    states = [value for (name, *_), value in found.items() if name == "streamdp_daemon_state"]
    assert sum(states) == 1


def test_no_metric_is_finer_than_it_may_be(client: TestClient) -> None:
    """No counts of records or tests, no durations, no histogram of times."""
    names = {name for name, *_ in samples(client)}
    assert not [name for name in names if re.search("row|record|duration|bucket|tests", name)]


def _expressions(content: Json) -> Iterator[str]:
    if isinstance(content, dict):
        for key, value in content.items():
            if key == "expr":
                yield value
            yield from _expressions(value)
    elif isinstance(content, list):
        for each in content:
            yield from _expressions(each)


@pytest.mark.parametrize("file", ["alerts.yaml", "grafana.json"])
def test_rules_and_dashboard_ask_for_metrics_there_are(client: TestClient, file: str) -> None:
    """Each name of a metric, of a label and of an event in them is one."""
    text = (MONITORING / file).read_text()
    content = yaml.safe_load(text) if file.endswith("yaml") else json.loads(text)
    expressions = list(_expressions(content))
    assert len(expressions) > 10
    metrics = client.get("/metrics").text
    declared = set(re.findall(r"^# TYPE (\w+)", metrics, re.MULTILINE))
    events = set(re.findall(r'streamdp_log_events_total\{event="([^"]+)"', metrics))
    for expression in expressions:
        assert set(re.findall(r"streamdp_\w+", expression)) <= declared, expression
        for asked in re.findall(r'event=~?"([^"]+)"', expression):
            assert set(asked.split("|")) <= events, asked


@pytest.mark.skipif(shutil.which("promtool") is None, reason="there is no promtool")
def test_prometheus_takes_the_rules_and_the_metrics(client: TestClient) -> None:
    """Its own checker finds nothing wrong with either."""
    rules = ["promtool", "check", "rules", str(MONITORING / "alerts.yaml")]
    assert subprocess.run(rules, capture_output=True).returncode == 0
    text = client.get("/metrics").content
    ran = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True)
    assert ran.returncode == 0, ran.stderr.decode()


def test_events_of_the_log_are_counted_once(tmp_path: Path) -> None:
    """A line that is still being written waits; a rotated file is followed by the next."""
    log, counts = tmp_path / "a.log", EventCounts()
    assert counts.of(None).total() == counts.of(log).total() == 0
    line = '{"event": "sink.failed", "level": "error"}\n'
    log.write_text(line * 2 + '{"event": "release.committed"}\n' + line[:10])
    assert counts.of(log)["sink.failed"] == counts.of(log)["sink.failed"] == 2
    with log.open("a") as file:
        file.write(line[10:])
    assert counts.of(log)["sink.failed"] == 3
    log.rename(tmp_path / "a.log.1")
    log.write_text(line)
    assert counts.of(log)["sink.failed"] == 4


def test_a_page_can_be_configured(tmp_path: Path, home: Path) -> None:
    """The section stands in the file like any other; a token does not."""
    text = (home / "config.yaml").read_text()
    config = tmp_path / "config.yaml"
    config.write_text(f"{text}\nweb: {{listen: 127.0.0.1:9000}}\n")
    found = load(config).web
    assert found is not None
    assert (found.host(), found.port()) == ("127.0.0.1", 9000)
    config.write_text(f"{text}\nweb: {{token: a-token-that-stands-here}}\n")
    with pytest.raises(Exception, match="a secret must not be written in the configuration"):
        load(config)
    (tmp_path / "token").write_text("a token of enough letters\n")
    config.write_text(f"{text}\nweb: {{token: {{file: token}}, listen: '0.0.0.0:80'}}\n")
    assert load(config).web is not None


def test_a_store_that_was_put_back_is_added_up_anew(reader: Reader) -> None:
    """A sum up to a row that the ledger no longer has says nothing of this ledger."""
    with reader.look() as view:
        found = reader.spent(view.database, "daily")
        assert found.epsilon_nano > 0
        reader._spent["daily"] = Spent(10**6, 10**12, 10**12, found.names)
        assert reader.spent(view.database, "daily") == found
