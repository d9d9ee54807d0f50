"""The configuration as frozen objects: one class a section of the YAML."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Annotated

from pydantic import Field

from streamdp.config.alerts import Alerts
from streamdp.config.privacy import Privacy
from streamdp.config.reports import ReportSection
from streamdp.config.web import Web
from streamdp.gates.section import Gate
from streamdp.kinds.registry import KINDS
from streamdp.kinds.section import Name, ReleaseSection
from streamdp.log.section import Log
from streamdp.privacy.amounts import atto_up, nano_up
from streamdp.privacy.filters import Caps, Measure
from streamdp.sections.schedules import Schedule
from streamdp.sections.section import ByKind, Section
from streamdp.sinks.section import AnySink
from streamdp.sources.section import SourceSection
from streamdp.store.section import Backup, Store
from streamdp.types import Json


def _section_of_kind(name: str) -> type[ReleaseSection] | None:
    spec = KINDS.find(name)
    return None if spec is None else spec.section


Release = Annotated[ReleaseSection, ByKind("release", KINDS.names, _section_of_kind)]
"""The section of a release, of whatever kind it says."""


class Configuration(Section):
    """A whole configuration; paths are absolute once it is loaded."""

    store: Store = Field(
        description="The SQLite file that keeps budget, releases and learned states.",
        examples=[{"path": "streamdp.db"}],
    )
    privacy: Privacy = Field(
        description="The privacy promise: unit, neighbours and caps on epsilon."
    )
    sources: dict[Name, SourceSection] = Field(
        min_length=1,
        description="Tables and files to read, by name.",
        examples=[{"flights": {"path": "flights/*.parquet", "batches": "files"}}],
    )
    releases: dict[Name, Release] = Field(
        min_length=1,
        description="What is published of each batch, by name. A release with its schedule is a"
        " job.",
    )
    gates: dict[Name, Gate] = Field(
        default={},
        description="Private tests, by name, that let jobs release, pause them, or notify sinks. A"
        " test of one release may stand at its key `gate`.",
    )
    sinks: dict[Name, AnySink] = Field(
        default={},
        description="Where releases are delivered, by name. Releases stay in the store too.",
        examples=[{"file": {"kind": "jsonl", "path": "releases.jsonl"}}],
    )
    log: Log = Field(default=Log(), description="Where events are logged, and from which level.")
    alerts: Alerts | None = Field(
        default=None,
        description="Which events are sent to a sink for the operator. Default: none.",
        examples=[{"sink": "pager", "on": ["stalled", "clock"]}],
    )
    backup: Backup | None = Field(
        default=None,
        description="Folder or storage into which the daemon copies the store, and how often."
        " Default: no copies.",
        examples=[{"path": "/mnt/other/copies", "every": "1h", "keep": 6}],
    )
    reports: dict[Name, ReportSection] = Field(
        default={},
        description="Reports that are written by themselves into a folder, one file a period, by"
        " name. Default: none.",
        examples=[{"monthly": {"job": "air_time", "period": "month", "path": "reports"}}],
    )
    web: Web | None = Field(
        default=None,
        description="Read-only web page, metrics and API beside the daemon. `{}` takes the"
        " defaults. Needs the extra `streamdp[web]`. Default: no page.",
        examples=[{"listen": "127.0.0.1:8765"}],
    )

    @cached_property
    def _own_gates(self) -> dict[str, Gate]:
        return {
            f"{name}.gate": Gate.model_construct(**dict(release.gate), release=(name,))
            for name, release in self.releases.items()
            if release.gate is not None
        }

    def all_gates(self) -> dict[str, Gate]:
        """Gates by name; the gate of a release is called after it, NAME.gate."""
        return {**self.gates, **self._own_gates}

    def source_of(self, gate: Gate) -> str:
        """The source whose batches a gate is asked about."""
        return gate.source or self.releases[gate.release[0]].source

    def source_section(self, job: str) -> SourceSection:
        """The section of the source that a job reads."""
        return self.sources[self.releases[job].source]

    def source_of_task(self, task: str) -> str:
        """The source of a scheduled release or gate."""
        if task in self.releases:
            return self.releases[task].source
        return self.source_of(self.gates[task])

    def gates_of(self, source: str) -> list[str]:
        """Names of the gates of a source."""
        return [name for name, gate in self.all_gates().items() if self.source_of(gate) == source]

    def cost_of_batch(self, source: str, measure: Measure) -> int:
        """Least price of all releases and gates of a source for one batch.

        A batch may be in one run of each gate.
        In rho that is what has a price in rho: what other releases cost depends on their draws, and
        the ledger looks at it.
        """
        releases = [each for each in self.releases.values() if each.source == source]
        if measure == "delta":
            return sum(atto_up(each.price.delta) for each in releases)
        cost = sum(each.price.nano for each in releases if each.price.measure == measure)
        if measure == "epsilon":
            gates = self.all_gates()
            cost += sum(nano_up(gates[name].epsilon) for name in self.gates_of(source))
        return cost

    def first_release(self, gate: Gate) -> ReleaseSection | None:
        """The release whose column a gate tests; None if it has one of its own."""
        return self.releases[gate.release[0]] if gate.release else None

    def gated(self) -> dict[str, str]:
        """Releases that have a gate, and its name."""
        return {job: name for name, gate in self.all_gates().items() for job in gate.release}

    def tasks(self) -> list[str]:
        """Everything with a schedule: all releases, and the gates that let nothing release."""
        return [*self.releases, *(name for name, gate in self.gates.items() if not gate.release)]

    def caps_of(self, source: str) -> Caps:
        """Caps of a source; of a growing one each is for life, as records recur in all batches."""
        caps = self.privacy.caps.caps()
        if not self.sources[source].is_growing():
            return caps
        windows = tuple(replace(limit, batches=None, seconds=None) for limit in caps.windows)
        lifetime = min(caps.batch_nano, caps.lifetime_nano)
        return replace(caps, lifetime_nano=lifetime, windows=windows)

    def terms(self) -> dict[str, tuple[Caps, dict[str, str]]]:
        """Terms that every source's budget is bound to at its first use."""
        said = {"unit": str(self.privacy.unit), "neighbours": self.privacy.neighbours}
        return {
            name: (self.caps_of(name), said | section.growth())
            for name, section in self.sources.items()
        }

    def data(self) -> dict[str, Json]:
        """Identity of every source's data, with its time and unit columns."""
        who = self.privacy.unit.column
        return {name: section.identity(who) for name, section in self.sources.items()}

    def schedule_of(self, task: str) -> Schedule:
        """When a task wakes."""
        return (self.releases if task in self.releases else self.gates)[task].schedule


def json_schema() -> Json:
    """The schema editors check a configuration against."""
    return {
        **Configuration.model_json_schema(),
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "streamdp configuration",
    }
