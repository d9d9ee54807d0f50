"""Metrics for Prometheus and OpenMetrics: ledger facts and the clock, nothing finer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import Field, dataclass
from pathlib import Path
from typing import Any, get_args

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily as Counter
from prometheus_client.core import GaugeMetricFamily as Gauge
from prometheus_client.core import InfoMetricFamily as Info
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response

from streamdp.privacy.amounts import ATTO, NANO
from streamdp.privacy.filters import Measure
from streamdp.reports.holds import Condition
from streamdp.reports.state import SHOWN, DaemonState, JobView, Overview, overview
from streamdp.store.archive import restarts
from streamdp.store.reading.reports import oldest_owed, owed_rows
from streamdp.version import __version__
from streamdp.web.reader import View
from streamdp.web.requests import Parameters

MEASURES: tuple[Measure, ...] = ("epsilon", "rho")
JOB_STATES: tuple[str, ...] = get_args(Condition)
QUESTION_STATES = ("slow", "hung")
GATE_STATES = ("armed", "ready", "rearm it", "waits", "exhausted")
DAEMON_STATES: tuple[str, ...] = get_args(DaemonState)
UNITS = {"amount": NANO, "delta": ATTO}


def metrics(request: Request, view: View) -> Response:
    """All metrics, in the text format that the request prefers."""
    Parameters(request)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Facts(view))
    encode, kind = choose_encoder(request.headers.get("accept", ""))
    return Response(encode(registry), headers={"Content-Type": kind})


@dataclass(frozen=True, eq=False)
class Facts(Collector):
    """Facts from one look at the store."""

    view: View

    def collect(self) -> Iterator[Metric]:
        """Metrics of the whole, of jobs, gates and sources."""
        view = self.view
        found = overview(view.configuration, view.database, view.now, view.spent)
        yield Info("streamdp_build", "This streamdp.", value={"version": __version__})
        yield _states("streamdp_daemon_state", "The daemon's state.", DAEMON_STATES, found.daemon)
        yield Gauge(
            "streamdp_heartbeat_timestamp_seconds",
            "Last sign of life of the daemon, 0 before the first.",
            value=found.pulse.heartbeat_at or 0,
        )
        yield from _of_pulse(view, found)
        yield from _of_jobs(found)
        yield from _of_gates(found)
        yield from _of_sources(found)
        yield from _of_deliveries(view)
        yield from _of_files(view)
        yield _of_learners(view)
        yield _of_log(view, found)


def _states(name: str, about: str, states: tuple[str, ...], state: str) -> Metric:
    family = Gauge(name, about, labels=["state"])
    for each in states:
        family.add_metric([each], float(each == state))
    return family


def _of_pulse(view: View, found: Overview) -> Iterator[Metric]:
    """What the daemon does now; of none that works, what it did last."""
    pulse = found.beat
    can = found.daemon == "running" and not (pulse is not None and pulse.store)
    yield Gauge("streamdp_store_writable", "Whether the daemon can write its store.", value=can)
    yield Gauge(
        "streamdp_round_timestamp_seconds",
        "When the newest round ended, 0 before the first.",
        value=0 if pulse is None else pulse.round_at or 0,
    )
    questions = Gauge(
        "streamdp_questions", "Questions that are slow or hang.", labels=["source", "state"]
    )
    for source in view.configuration.sources:
        states = [] if pulse is None else [e.state for e in pulse.asking if e.source == source]
        for state in QUESTION_STATES:
            questions.add_metric([source, state], float(state in states))
    yield questions
    late = Gauge("streamdp_job_late", "Whether a job has missed a turn.", labels=["job"])
    for job in view.configuration.releases:
        late.add_metric([job], float(pulse is not None and job in pulse.late))
    yield late
    refused = pulse is not None and bool(pulse.reload)
    yield Gauge("streamdp_reload_refused", "Whether the last reload was refused.", value=refused)
    backup = Gauge("streamdp_backup_timestamp_seconds", "When the newest copy was made.")
    failing = Gauge("streamdp_backup_failing", "Whether the last copy could not be made.")
    if view.configuration.backup is not None and pulse is not None:  # only a daemon makes copies
        backup.add_metric([], pulse.backup_at or 0)
        failing.add_metric([], float(bool(pulse.backup)))
    yield from (backup, failing)


def _of_jobs(found: Overview) -> Iterator[Metric]:
    counted = Gauge("streamdp_jobs", "Jobs by state.", labels=["state"])
    for state in JOB_STATES:
        counted.add_metric([state], sum(job.condition == state for job in found.jobs))
    yield counted
    for each in SHOWN:
        if each.metadata["gauge"]:
            yield _gauge(each, found.jobs)
    for each in SHOWN:
        if each.metadata["counter"]:
            name = f"streamdp_job_{each.metadata['counter']}"
            total = Counter(name, each.metadata["about"], labels=["job"])
            for job in found.jobs:
                total.add_metric([job.job], getattr(job, each.name))
            yield total
    for measure in MEASURES:
        total = Counter(f"streamdp_job_{measure}_spent", "Charged to a job.", labels=["job"])
        for job in found.jobs:
            if job.measure == measure:
                total.add_metric([job.job], job.spent / NANO)
        yield total


def _gauge(field: Field[Any], jobs: tuple[JobView, ...]) -> Metric:
    """A field of each job that has it; of a time, 0 where there is none."""
    form, about = field.metadata["form"], field.metadata["about"]
    about = f"{about} 0 stands for none." if form == "time" else about
    family = Gauge(f"streamdp_job_{field.metadata['gauge']}", about, labels=["job"])
    for job in jobs:
        value = getattr(job, field.name)
        if value is not None:
            family.add_metric([job.job], value / UNITS.get(form, 1))
        elif form == "time":
            family.add_metric([job.job], 0)
    return family


def _of_gates(found: Overview) -> Iterator[Metric]:
    states = Gauge("streamdp_gates", "Gates by state.", labels=["state"])
    answers = Counter("streamdp_gate_answers", "Answers of a gate.", labels=["gate", "answer"])
    for state in GATE_STATES:
        states.add_metric([state], sum(gate.state == state for gate in found.gates))
    for gate in found.gates:
        report = gate.report
        answers.add_metric([report.gate, "yes"], report.accepted)
        answers.add_metric([report.gate, "no"], report.asked - report.accepted)
    yield from (states, answers)


def _of_sources(found: Overview) -> Iterator[Metric]:
    """Metrics of sources, in epsilon or rho as their caps are."""
    for measure in MEASURES:
        name, labels = f"streamdp_{measure}", ["scope"]
        spent = Counter(f"{name}_spent", "Charged to a source for life.", labels=labels)
        cap = Gauge(f"{name}_lifetime_cap", "Lifetime cap of a source.", labels=labels)
        left = Gauge(f"{name}_left", "What the lifetime cap has left.", labels=labels)
        for purse in found.purses:
            if purse.measure == measure:
                spent.add_metric([purse.source], purse.spent_nano / NANO)
                cap.add_metric([purse.source], purse.cap_nano / NANO)
                left.add_metric([purse.source], (purse.cap_nano - purse.spent_nano) / NANO)
        yield from (spent, cap, left)
    labels = ["scope"]
    spent = Counter("streamdp_delta_spent", "Delta charged to a source for life.", labels=labels)
    cap = Gauge("streamdp_delta_lifetime_cap", "Lifetime cap on delta.", labels=labels)
    left = Gauge("streamdp_delta_left", "Delta that the lifetime cap has left.", labels=labels)
    for purse in found.purses:
        if purse.cap_delta_atto:
            of = [purse.source]
            spent.add_metric(of, purse.spent_delta_atto / ATTO)
            cap.add_metric(of, purse.cap_delta_atto / ATTO)
            left.add_metric(of, (purse.cap_delta_atto - purse.spent_delta_atto) / ATTO)
    yield from (spent, cap, left)


def _of_deliveries(view: View) -> Iterator[Metric]:
    waiting = Gauge("streamdp_outbox", "Deliveries that sinks owe an answer.", labels=["sink"])
    dead = Gauge("streamdp_dead_letters", "Deliveries that were given up.", labels=["sink"])
    counts = {name: [0, 0] for name in view.configuration.sinks}
    for row in owed_rows(view.database):
        counts.setdefault(row["sink"], [0, 0])[row["dead_at"] is not None] += 1
    for sink, (open_, given_up) in counts.items():
        waiting.add_metric([sink], open_)
        dead.add_metric([sink], given_up)
    oldest = oldest_owed(view.database)
    yield from (waiting, dead)
    age = 0 if oldest is None else max(view.now - oldest, 0)
    yield Gauge("streamdp_outbox_age_seconds", "Age of the oldest that waits.", value=age)


def _of_files(view: View) -> Iterator[Metric]:
    files = dict(zip(("store", "anchor"), view.configuration.store.paths(), strict=True))
    family = Gauge("streamdp_file_bytes", "Size of a file.", labels=["file"])
    free = Gauge("streamdp_volume_free_bytes", "Free on the volume of a file.", labels=["file"])
    whole = Gauge("streamdp_volume_bytes", "Size of the volume of a file.", labels=["file"])
    for name, path in files.items():
        family.add_metric([name], _size(path))
        with suppress(OSError):
            volume = os.statvfs(path.parent)
            free.add_metric([name], volume.f_bavail * volume.f_frsize)
            whole.add_metric([name], volume.f_blocks * volume.f_frsize)
    yield from (family, free, whole)


def _of_learners(view: View) -> Metric:
    """Metrics of learners; one restarts when its signature changes."""
    family = Counter("streamdp_learner_restarts", "Learners that began anew.", labels=["job"])
    for job in view.configuration.releases:
        number = view.once(("restarts", job), lambda job=job: restarts(view.database, job))  # type: ignore[misc]
        family.add_metric([job], number)
    return family


def _of_log(view: View, found: Overview) -> Metric:
    """Warnings and errors in the file of the log; without one, those since the daemon's start."""
    family = Counter("streamdp_log_events", "Warnings and errors in the log.", labels=["event"])
    counts = view.reader.events.of(view.configuration.log.path)
    if view.configuration.log.path is None and found.beat is not None:
        counts.update(found.beat.events)
    for name, count in sorted(counts.items()):
        family.add_metric([name], count)
    return family


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
