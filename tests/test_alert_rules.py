"""Each shipped alert rule fires when its condition is there, and none fires over a sound store.

Conditions are made in a real store, its pulse and its log; the page's metrics are scraped, and
`Scrapes` evaluates the rule's expression: that part of Prometheus's language which the rules use.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families as parse
from starlette.testclient import TestClient

from streamdp.cli import cli
from streamdp.cli.web import kind_of
from streamdp.config import load
from streamdp.config.model import Web
from streamdp.daemon.runtime import SystemClock, runtime
from streamdp.log import close
from streamdp.privacy.draws import OperatingSystemEntropy
from streamdp.store.pulse import Asking, Pulse, PulseFile
from streamdp.web.app import application
from streamdp.web.reader import Reader
from tests.web.addresses import HOST

ROOT = Path(__file__).parents[1]
RULES = {
    rule["alert"]: rule["expr"]
    for group in yaml.safe_load((ROOT / "deploy/monitoring/alerts.yaml").read_text())["groups"]
    for rule in group["rules"]
}

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]
Scrape = list[tuple[str, Labels, float]]
SECONDS = {"m": 60, "h": 3600, "d": 86_400}
TOKEN = re.compile(r'\s*(=~|==|<=|>=|!=|"[^"]*"|[A-Za-z_]\w*|\d+[mhd]\b|\d+(?:\.\d+)?|\S)')
COMPARED: dict[str, Callable[[float, float], bool]] = {
    "==": lambda a, b: a == b,
    ">=": lambda a, b: a >= b,
    ">": lambda a, b: a > b,
    "<": lambda a, b: a < b,
}
COUNTED: dict[str, Callable[[float, float], float]] = {
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b if b else float("nan"),
}


@dataclass
class Scrapes:
    """Scrapes of the metrics with their times, oldest first, and questions to them."""

    taken: list[tuple[int, Scrape]]
    words: list[str] = field(default_factory=list)

    def fires(self, expression: str) -> Vector:
        """The series for which an expression holds at the last scrape."""
        self.words = TOKEN.findall(expression)
        found = self._any()
        assert not self.words, self.words
        assert isinstance(found, dict)
        return found

    def _next(self, *wanted: str) -> str:
        if self.words and (not wanted or self.words[0] in wanted):
            return self.words.pop(0)
        return ""

    def _any(self) -> Vector | float:
        left = self._both()
        while self._next("or"):
            left = {**_vector(self._both()), **_vector(left)}
        return left

    def _both(self) -> Vector | float:
        left = self._compared()
        while word := self._next("and", "unless"):
            on = None
            if self._next("on"):
                assert self._next("(")
                on = []
                while (name := self._next()) != ")":
                    on.append(name)
            right = {_only(labels, on) for labels in _vector(self._compared())}
            left = {
                labels: value
                for labels, value in _vector(left).items()
                if (_only(labels, on) in right) == (word == "and")
            }
        return left

    def _compared(self) -> Vector | float:
        left = self._sum()
        sign = self._next(*COMPARED)
        if not sign:
            return left
        right = self._sum()
        assert isinstance(right, float)
        return {k: v for k, v in _vector(left).items() if COMPARED[sign](v, right)}

    def _sum(self) -> Vector | float:
        left = self._product()
        while sign := self._next("-"):
            left = _counted(sign, left, self._product())
        return left

    def _product(self) -> Vector | float:
        left = self._one()
        while sign := self._next("*", "/"):
            left = _counted(sign, left, self._one())
        return left

    def _one(self) -> Vector | float:
        word = self._next()
        if word == "(":
            found = self._any()
            assert self._next(")")
            return found
        if re.fullmatch(r"[\d.]+", word):
            return float(word)
        if word == "time":
            assert self._next("(")
            assert self._next(")")
            return float(self.taken[-1][0])
        if word == "absent":
            assert self._next("(")
            there = self._selected(self._next())(self.taken[-1][1])
            assert self._next(")")
            return {} if there else {frozenset(): 1.0}
        if word == "increase":
            assert self._next("(")
            select = self._selected(self._next())
            assert self._next("[")
            span = self._next()
            assert self._next("]")
            assert self._next(")")
            since = self.taken[-1][0] - int(span[:-1]) * SECONDS[span[-1]]
            series = [select(scrape) for at, scrape in self.taken if at >= since]
            # A series that appears with its first event has no increase: Prometheus knows no zero.
            return {
                key: value - series[0][key] for key, value in series[-1].items() if key in series[0]
            }
        return self._selected(word)(self.taken[-1][1])

    def _selected(self, name: str) -> Callable[[Scrape], Vector]:
        assert name.startswith("streamdp_"), name
        wanted: list[tuple[str, str]] = []
        if self._next("{"):
            while (label := self._next()) != "}":
                sign, value = self._next("=", "=~"), self._next().strip('"')
                wanted.append((label, value if sign == "=~" else re.escape(value)))
                self._next(",")

        def select(scrape: Scrape) -> Vector:
            return {
                labels: value
                for each, labels, value in scrape
                if each == name
                and all(re.fullmatch(match, dict(labels).get(key, "")) for key, match in wanted)
            }

        return select


def _vector(found: Vector | float) -> Vector:
    assert isinstance(found, dict)
    return found


def _only(labels: Labels, on: list[str] | None) -> Labels:
    return labels if on is None else frozenset(each for each in labels if each[0] in on)


def _counted(sign: str, left: Vector | float, right: Vector | float) -> Vector | float:
    count = COUNTED[sign]
    if isinstance(left, float) and isinstance(right, float):
        return count(left, right)
    if isinstance(left, float):
        return {key: count(left, value) for key, value in _vector(right).items()}
    if isinstance(right, float):
        return {key: count(value, right) for key, value in left.items()}
    return {key: count(value, right[key]) for key, value in left.items() if key in right}


CONFIG = """
store: {path: store.db, anchor: anchor}
privacy: {unit: order, caps: {batch: 4, lifetime: 400}}
sources:
  s:
    path: s.csv
    format: csv
    types: {at: timestamp, x: number}
    batches: {column: at, every: 1d, start: 2024-01-01, end: 2024-01-03}
  later:
    path: later.csv
    format: csv
    types: {at: timestamp, x: number}
    batches: {column: at, every: 1d, start: 2099-01-01}
releases:
  a: {kind: quantiles, source: s, column: x, quantiles: quartiles, resolution: 1, bounds: [0, 100],
      guess: {location: 50, scale: 20}, expected_rows: 100, epsilon: 1, sinks: [file]}
  never: {kind: quantiles, source: later, column: x, quantiles: quartiles, resolution: 1,
      bounds: [0, 100], guess: {location: 50, scale: 20}, expected_rows: 100, epsilon: 1,
      sinks: [file]}
sinks:
  file: {kind: jsonl, path: out/releases.jsonl}
backup: {path: copies, every: 1d, keep: 2}
log: {path: streamdp.log, stderr: "off"}
"""


class Shop:
    """A configuration with two releases made, and scrapes of its page."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.taken = folder, list[tuple[int, Scrape]]()
        self.ahead, self.said = 0, ""
        rows = [f"2024-01-0{day}T12:00:00,{n % 90}" for day in range(1, 6) for n in range(100)]
        (folder / "s.csv").write_text("\n".join(["at,x", *rows, ""]))
        (folder / "later.csv").write_text("at,x\n2099-01-01T12:00:00,5\n")
        (folder / "out").mkdir()
        (folder / "config.yaml").write_text(CONFIG)
        assert self.once() == 0, self.said
        self.pulse()
        self.scrape()

    def now(self) -> int:
        return int(time.time()) + self.ahead

    def once(self) -> int:
        """Do what is due, as `run --once` does."""
        ran = CliRunner().invoke(cli, ["run", "--once", "-c", str(self.folder / "config.yaml")])
        close()
        self.said = ran.output
        return ran.exit_code

    def changed(self, *pairs: tuple[str, str]) -> None:
        """Edit the configuration."""
        text = (self.folder / "config.yaml").read_text()
        for before, after in pairs:
            assert before in text
            text = text.replace(before, after)
        (self.folder / "config.yaml").write_text(text)

    def pulse(self, **said: object) -> None:
        """What a daemon that works says now."""
        told = {"backup_at": self.now(), "round_at": self.now(), **said}
        file = PulseFile(self.folder / "store.db")
        file.write(Pulse(self.now(), 7, **told))  # type: ignore[arg-type]
        file.close()

    def scrape(self) -> None:
        """Ask the page for its metrics."""
        path = self.folder / "config.yaml"
        reader = Reader(path, load(path), kind_of, now=self.now)
        with TestClient(application(reader, Web()), base_url=HOST) as client:
            text = client.get("/metrics").text
        samples = [each for family in parse(text) for each in family.samples]
        found = [(each.name, frozenset(each.labels.items()), each.value) for each in samples]
        self.taken.append((self.now(), found))

    def burn(self) -> None:
        """Die with a charge, and start anew."""
        configuration, clock = load(self.folder / "config.yaml"), SystemClock()
        for reserves in (True, False):
            mask = os.umask(0o077)
            with runtime(configuration, OperatingSystemEntropy(), clock, _quiet) as running:
                job = running.jobs["a"].jobs[0]
                if reserves:
                    known = running.store.known_batches("s")
                    batch = next(b for b in job.source.batches(clock.now()) if b.key not in known)
                    running.store.add_batches([(batch, None)], clock.now())
                    charge = job.charging.charge(job.kind.plan(job.kind.init(), batch))
                    running.store.reserve("s", "a", batch, charge, clock.now())
                else:
                    running.store.recover(clock.now())
            os.umask(mask)

    def logged(self, event: str) -> None:
        with (self.folder / "streamdp.log").open("a") as file:
            file.write(f'{{"event": "{event}", "level": "error"}}\n')

    def sql(self, statement: str) -> None:
        with closing(sqlite3.connect(self.folder / "store.db")) as store:
            store.execute(statement)
            store.commit()

    def firing(self) -> set[str]:
        return {name for name, rule in RULES.items() if Scrapes(self.taken).fires(rule)}


def _quiet(event: str, /, **fields: str | int | None) -> None:
    """A log that nobody reads."""


def _burn(times: int) -> Callable[[Shop], None]:
    def act(shop: Shop) -> None:
        for number in range(times):
            shop.changed((f"end: 2024-01-0{3 + number}", f"end: 2024-01-0{4 + number}"))
            shop.burn()

    return act


def _later(days: int) -> Callable[[Shop], None]:
    def act(shop: Shop) -> None:
        shop.ahead = days * 86_400
        shop.pulse()

    return act


def _silent(shop: Shop) -> None:
    shop.ahead = 600


def _stopped(shop: Shop) -> None:
    file = PulseFile(shop.folder / "store.db")
    file.write(Pulse(shop.now(), None))
    file.close()
    shop.ahead = 3600
    shop.scrape()
    assert "StreamdpDaemonStopped" not in shop.firing(), "an hour may lie between two runs"
    shop.ahead = 3 * 3600


def _exhaust(shop: Shop) -> None:
    shop.changed(("batch: 4, lifetime: 400", "batch: 1, lifetime: 2"))
    shop.once()


def _altered(shop: Shop) -> None:
    file = shop.folder / "s.csv"
    file.write_text(file.read_text().replace("at,x", "at,y"))
    shop.changed(("end: 2024-01-03", "end: 2024-01-04"))
    assert shop.once() == 1


def _anew(shop: Shop) -> None:
    shop.changed(("end: 2024-01-03", "end: 2024-01-04"), ("location: 50", "location: 40"))
    assert shop.once() == 0


def _owed(shop: Shop) -> None:
    shop.sql("UPDATE outbox SET delivered_at = NULL")
    _later(1)(shop)


def _dead(shop: Shop) -> None:
    shop.sql("UPDATE outbox SET delivered_at = NULL, dead_at = 1704200000")


def _page_down(shop: Shop) -> None:
    shop.taken.append((shop.now(), []))


def _nothing_free(shop: Shop) -> None:
    full = os.statvfs_result((4096, 4096, 100, 5, 5, 9, 9, 9, 0, 255))
    os.statvfs = lambda path: full


def _log(event: str) -> Callable[[Shop], None]:
    return lambda shop: shop.logged(event)


def _said(**said: object) -> Callable[[Shop], None]:
    return lambda shop: shop.pulse(**said)


PROVOKED: dict[str, Callable[[Shop], None]] = {
    "StreamdpPageDown": _page_down,
    "StreamdpDaemonDead": _silent,
    "StreamdpDaemonStopped": _stopped,
    "StreamdpStoreUnwritable": _said(store="no space left"),
    "StreamdpVolumeFilling": _nothing_free,
    "StreamdpQuestionHung": _said(asking=(Asking("s", "a", 0, "hung"),)),
    "StreamdpJobLate": _said(late={"a": 60}),
    "StreamdpNeverReleased": lambda shop: None,
    "StreamdpStarved": _burn(3),
    "StreamdpReloadRefused": _said(reload="the cap is higher"),
    "StreamdpBackupFailing": _said(backup="no space left"),
    "StreamdpNoRelease": _later(3),
    "StreamdpJobExhausted": _exhaust,
    "StreamdpJobFailing": _altered,
    "StreamdpBudgetLow": _exhaust,
    "StreamdpRunwayShort": _exhaust,
    "StreamdpBurnt": _burn(1),
    "StreamdpBatchRefused": _log("budget.exhausted"),
    "StreamdpDeadLetters": _dead,
    "StreamdpOutboxOld": _owed,
    "StreamdpBatchUnreadable": _log("batch.unreadable"),
    "StreamdpLearnerRestarted": _anew,
    "StreamdpStoreFailed": _log("store.failed"),
}


def test_every_rule_is_provoked() -> None:
    assert PROVOKED.keys() == RULES.keys()


@pytest.mark.thinned(4)
@pytest.mark.parametrize("rule", PROVOKED)
def test_a_rule_fires_when_its_condition_is_there(
    rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not before: over a sound store only the job that never released is told."""
    monkeypatch.setattr(os, "statvfs", os.statvfs)  # put back in the end
    shop = Shop(tmp_path)
    shop.scrape()
    assert shop.firing() - {"StreamdpVolumeFilling"} == {"StreamdpNeverReleased"}
    PROVOKED[rule](shop)
    if rule != "StreamdpPageDown":
        shop.scrape()
    assert rule in shop.firing()


def test_no_copy_is_missed_where_no_daemon_makes_one(tmp_path: Path) -> None:
    """Of `run --once` under a timer, whose copies are others' work."""
    shop = Shop(tmp_path)
    shop.sql("UPDATE instance SET pid = NULL, stopped_at = heartbeat_at + 60")
    (tmp_path / "store.db.pulse").unlink()
    shop.scrape()
    assert shop.firing() == {"StreamdpNeverReleased"}


def test_events_are_counted_from_nothing_without_a_log_file(tmp_path: Path) -> None:
    """Of a daemon that logs to its console alone the first event is an increase too."""
    shop = Shop(tmp_path)
    shop.changed((', stderr: "off"', ""), ("path: streamdp.log", "level: info"))
    shop.taken.clear()
    shop.scrape()
    shop.pulse(events={"store.failed": 1})
    shop.scrape()
    assert "StreamdpStoreFailed" in shop.firing()
