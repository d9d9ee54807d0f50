"""The configuration as frozen objects: one class a section of the YAML."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    SecretStr,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from streamdp.config.privacy import Privacy
from streamdp.gates.section import Gate
from streamdp.kinds.section import Name, ReleaseSection
from streamdp.kinds.spec import KINDS
from streamdp.log import LogSection
from streamdp.privacy.amounts import atto_up, nano_up
from streamdp.privacy.filters import Caps, Measure
from streamdp.sections.document import Document, refuse
from streamdp.sections.document import Path as Place
from streamdp.sections.schedules import Schedule
from streamdp.sections.secrets import Secret, SecretFile
from streamdp.sections.section import ByKind, Section
from streamdp.sections.values import FileMode, PositiveDuration
from streamdp.sinks.section import AnySink
from streamdp.sources.section import SourceSection
from streamdp.store.section import Backup, Store
from streamdp.types import Json

SHORTEST_TOKEN = 16
"""Characters that a token has at least."""

_LISTEN = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+):(\d{1,5})")
_HEADER = r"^[A-Za-z][A-Za-z0-9-]{0,62}$"


def _network(value: object) -> str:
    try:
        return str(ipaddress.ip_network(str(value)))
    except ValueError:
        raise ValueError(
            "this is an address or a network, such as 10.0.0.5 or 10.0.0.0/24"
        ) from None


Network = Annotated[str, BeforeValidator(_network), WithJsonSchema({"type": "string"})]
"""An address, or a network of them."""


class Proxy(Section):
    """A proxy in front of the page that has checked who looks."""

    header: str = Field(
        pattern=_HEADER,
        description="HTTP header in which the proxy passes the name of the authenticated user.",
        examples=["X-Forwarded-User"],
    )
    addresses: tuple[Network, ...] = Field(
        min_length=1,
        description="Addresses or networks of the proxy. The header is trusted from these only.",
        examples=[["10.0.0.5", "10.0.1.0/24"]],
    )


class Web(Section):
    """A read-only page over the store, with metrics and an API."""

    listen: str = Field(
        default="127.0.0.1:8765",
        description="Address and port to listen on. An address other than loopback needs a token"
        " or a proxy. Default 127.0.0.1:8765.",
        examples=["0.0.0.0:8765"],
    )
    token: Secret | None = Field(
        default=None,
        description="Secret that a visitor must give as a bearer token or password; at least 16"
        " characters. From the environment or a file. Default: none.",
        examples=["${STREAMDP_TOKEN}", {"file": "/run/secrets/token"}],
    )
    proxy: Proxy | None = Field(
        default=None, description="Reverse proxy that authenticates visitors. Default: none."
    )
    hosts: tuple[str, ...] = Field(
        default=(),
        description="Host names under which the page is reached, besides that of `listen`."
        " Default: none.",
        examples=[["stats.example.org"]],
    )
    requests_per_second: int = Field(
        default=100,
        ge=1,
        le=100_000,
        strict=True,
        description="Most requests a second from one address; more are refused. Default 100.",
    )

    @field_validator("listen")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        match = _LISTEN.fullmatch(value)
        if match is None or int(match[2]) > 65_535:
            raise ValueError("write address and port: 127.0.0.1:8765, or [::1]:8765")
        return value

    @field_validator("token")
    @classmethod
    def _is_long(cls, value: SecretFile | SecretStr | None) -> SecretFile | SecretStr | None:
        if isinstance(value, SecretStr) and len(value.get_secret_value()) < SHORTEST_TOKEN:
            raise ValueError(f"a token has at least {SHORTEST_TOKEN} characters")
        return value

    @model_validator(mode="after")
    def _others_are_known(self) -> Web:
        if not self.is_loopback() and self.token is None and self.proxy is None:
            raise ValueError("a page that other machines reach needs a token or a proxy")
        return self

    def host(self) -> str:
        """The address without its port."""
        return self.listen.rpartition(":")[0].strip("[]")

    def port(self) -> int:
        """The port."""
        return int(self.listen.rpartition(":")[2])

    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        if self.host() == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host()).is_loopback
        except ValueError:
            return False


ReportForm = Literal["html", "pdf", "md"]


class ReportSection(Section):
    """Reports of one job, written as soon as a period is over: `FOLDER/JOB-2013-01-01.html`."""

    job: str = Field(description="Name of the release to report on.", examples=["air_time"])
    period: Literal["day", "week", "month", "quarter", "year"] = Field(
        default="month",
        description="Period of the calendar, in the time zone of the batches. It is over when a"
        " batch of a later one is released, or a day after its end. Default `month`.",
    )
    path: Path = Field(
        description="Folder of the reports, relative to the configuration. It is created if"
        " missing. If the newest report is deleted it is written again; `streamdp report` writes"
        " any other, such as that of a period that was backfilled.",
        examples=["reports"],
    )
    form: tuple[ReportForm, ...] = Field(
        default=("html",),
        min_length=1,
        description="Formats, each a file of its own: `html` and `md` need the extra `web`, `pdf`"
        " needs the extra `pdf`. Default `[html]`.",
        examples=[["html", "pdf"]],
    )
    mode: FileMode = Field(
        default=0o600,
        description="Permissions of each file, in octal. Default 0600.",
        examples=["0644"],
    )

    def check(self, document: Document, path: Place, *, growing: bool) -> None:
        """Require batches that lie in a period.

        Raises:
            ConfigurationError: They grow.
        """
        if growing:
            refuse(
                f"the batches of {self.job} grow: all begin with the first record, none is of a"
                " period",
                document,
                path,
                f"leave it out: `streamdp report {self.job} --period all` writes one of all"
                " releases",
            )


AlertEvent = Literal[
    "stalled",
    "unreadable",
    "budget-low",
    "burnt",
    "dead-letter",
    "undelivered",
    "clock",
    "backup",
    "late",
    "store",
    "suspect",
    "changed",
    "resolved",
]
ALERT_EVENTS: tuple[AlertEvent, ...] = (
    *("stalled", "unreadable", "budget-low", "burnt", "dead-letter", "undelivered", "clock"),
    *("backup", "late", "store", "suspect", "changed", "resolved"),
)


class Changed(Section):
    """When a quantile of the last seven batches counts as changed, from releases alone."""

    quantile: float = Field(
        default=0.5, gt=0, lt=1, description="Which quantile is watched. Default 0.5."
    )
    by: Fraction = Field(
        default=Fraction(1, 10),
        description="The least change that is told, as a percentage or a fraction of the value in"
        " the 28 batches before. Default 10%.",
        examples=["10%"],
    )
    sure: float = Field(
        default=0.99,
        gt=0.5,
        lt=1,
        description="The least probability that the process changed, and not the noise or days"
        " that differ anyway. Default 0.99.",
    )

    @field_validator("by", mode="before")
    @classmethod
    def _share(cls, value: Any) -> Fraction:
        return share_of(value)


class Alerts(Section):
    """Conditions that need an operator, each reported once when it begins and when it is over."""

    sink: str = Field(description="Name of the sink that gets the alerts.", examples=["pager"])
    on: tuple[AlertEvent, ...] = Field(
        default=ALERT_EVENTS,
        min_length=1,
        description="Kinds of events: `stalled` (no batch for long), `unreadable` (a batch or a"
        " source cannot be read), `budget-low`, `burnt` (a charge without a release, even if its"
        " batch was released afterwards),"
        " `dead-letter`, `undelivered` (a sink has taken nothing for an hour, and is tried again),"
        " `clock`, `backup` (no copy of the store for twice as long as there"
        " should be), `late` (a job has missed a turn of its schedule: a question is slow or"
        " hangs), `store` (the store or its anchor cannot be written; sent past the outbox),"
        " `suspect` (the newest release of a job has hardly any records, a value at a bound, or a"
        " wide interval: from releases alone), `changed` (a quantile changed, as the key `changed`"
        " says; also from releases alone), `resolved` (a condition that was told is over, which its"
        " reason names; of `burnt` and `store` never). By default all.",
    )
    budget_below: Fraction = Field(
        default=Fraction(1, 10),
        description="Share of the lifetime cap below which the budget is low, as a percentage or a"
        " fraction. Default 10%.",
        examples=["10%"],
    )
    stalled_after: PositiveDuration = Field(
        default=2 * 86_400,
        description="Time after the last batch of a source at which it counts as stalled, as a"
        " duration; of windows, on top of their length. A job that is not paused must have woken"
        " since, and a source whose last window has come does not stall. Default 2d.",
        examples=["2d"],
    )

    changed: Changed | None = Field(
        default=None,
        description="When `changed` is told of a job whose releases count records between cuts."
        " Without it, never.",
        examples=[{"quantile": 0.5, "by": "10%", "sure": 0.99}],
    )

    @field_validator("budget_below", mode="before")
    @classmethod
    def _share(cls, value: Any) -> Fraction:
        return share_of(value)


def share_of(value: Any) -> Fraction:
    """A share that is written as a percentage or a fraction."""
    text = str(value).strip()
    try:
        share = Fraction(text.removesuffix("%").strip()) / (100 if text.endswith("%") else 1)
    except (ValueError, ZeroDivisionError):
        raise ValueError("a share is written 10% or 0.1") from None
    if not 0 < share < 1:
        raise ValueError("a share lies between 0% and 100%")
    return share


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
    log: LogSection = Field(
        default=LogSection(), description="Where events are logged, and from which level."
    )
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
