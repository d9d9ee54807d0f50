"""The protocols that the layers speak."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

from streamdp.types.batches import Batch
from streamdp.types.forms import FloatArray, Json, Row, Rows
from streamdp.types.measurements import Measurement
from streamdp.types.questions import Query
from streamdp.types.releases import Charge, Column, Outcome, Past, Plan, Release


class Entropy(Protocol):
    """A source of uniform random bits; the operating system's in production."""

    def bits(self, count: int) -> int:
        """A uniform integer in [0, 2**count)."""
        ...


class Clock(Protocol):
    """A source of time."""

    def now(self) -> int:
        """POSIX time in whole seconds."""
        ...

    def timer(self) -> float:
        """Seconds since some moment, which go on evenly whatever is done to the clock."""
        ...

    def wait(self, seconds: float) -> None:
        """Let so many seconds pass."""
        ...


class Prior(Protocol):
    """A positive measure on the real line, fixed before the data is touched."""

    def log_mass(self, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """ln of the measure of each interval [lower, upper); -inf where it has none."""
        ...

    def describe(self) -> Json:
        """Return parameters enough to build it again; the ledger stores their digest."""
        ...


class ReleaseKind(Protocol):
    """Pure functions: what is published, what it costs one record, how it is drawn and learned."""

    @property
    def name(self) -> str:
        """The name of the kind in the configuration."""
        ...

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of a release, in order; a row may lack some."""
        ...

    def signature(self) -> Json:
        """The public parameters a learned state depends on; another signature starts anew."""
        ...

    def init(self) -> Json:
        """The learner's state before the first release."""
        ...

    def plan(self, state: Json, batch: Batch) -> Plan:
        """Question, and price for one record, from public facts alone."""
        ...

    def draw(self, plan: Plan, statistic: Any, entropy: Entropy) -> Outcome:
        """The private draw; total: no exception depends on the statistic.

        Args:
            plan: What `plan` returned.
            statistic: The `Statistic` that answers its query; of a query with `by` one a group.
            entropy: Source of chance.
        """
        ...

    def learn(self, state: Json, plan: Plan, outcome: Outcome) -> Json:
        """The next state, which survives JSON; has no data argument: it is post-processing."""
        ...

    def publish(self, state: Json, outcome: Outcome) -> Outcome:
        """The published rows: the outcome, with what follows from it and from the next state."""
        ...


@runtime_checkable
class ReadsReleases(Protocol):
    """A release kind whose question depends on what other jobs released before a batch."""

    @property
    def jobs(self) -> tuple[str, ...]:
        """The jobs whose releases it reads."""
        ...

    def informed(self, past: Mapping[str, tuple[Row, ...]]) -> ReleaseKind:
        """The kind that plans one batch.

        Args:
            past: Rows of the newest release of each job before the batch, of those that have one.
        """
        ...


def jobs_read(kind: ReleaseKind) -> tuple[str, ...]:
    """The jobs whose releases a kind reads; of most kinds none.

    Asked of every job in every round, so it looks for the one name and not for all of the protocol.
    """
    found: tuple[str, ...] = getattr(kind, "jobs", ())
    return found


@runtime_checkable
class SharesGroups(Protocol):
    """A release kind whose groups know of each other while one batch is drawn."""

    @property
    def expected_rows(self) -> int | None:
        """Public number of records of the group: the largest is drawn first."""
        ...

    def told(self, plan: Plan, shown: tuple[Any, ...]) -> Plan:
        """A plan of the same question and price, now that other groups are drawn.

        Args:
            plan: Of the same batch.
            shown: Of the groups drawn so far, what `shown` returned.
        """
        ...

    def shown(self, plan: Plan, outcome: Outcome) -> tuple[Any, ...]:
        """Evidence of an outcome for other groups, from what it released or paid for alone."""
        ...

    def replayed_beside(
        self,
        state: Json,
        batch: Batch,
        measurements: tuple[Measurement, ...],
        shown: tuple[Any, ...],
    ) -> tuple[Json, tuple[Any, ...]]:
        """The state after a release, None if it teaches nothing, and evidence for other groups."""
        ...


class Charging(Protocol):
    """The price of a release to a unit, and the bound on a unit's records."""

    def charge(self, plan: Plan) -> Charge:
        """The price of a plan to one unit."""
        ...

    def bounded(self, query: Query, batch: Batch) -> Query:
        """A question of which records of a unit beyond its bound do not count."""
        ...


class ExpectsRows(ReleaseKind, Protocol):
    """A kind that can be told how many records to expect."""

    def expecting(self, rows: Rows) -> ReleaseKind:
        """The kind for batches of so many records; its question and price stay as they are.

        Args:
            rows: By group; of groups that it does not name nothing new is known.
        """
        ...


class GateKind(Protocol):
    """Pure functions: what a gate asks, what a run costs, how it is answered."""

    def query(self, batch: Batch) -> Query:
        """The question to a batch."""
        ...

    def terms(self) -> Json:
        """The parameters of a run's noise; a run of other parameters cannot go on."""
        ...

    def charge(self) -> Charge:
        """The price of a run, however many tests it has."""
        ...

    def start(self, entropy: Entropy) -> Json:
        """The noisy threshold of a run. Private, and never drawn again."""
        ...

    def accepts(
        self, hidden: Json, number: int, past: Past, statistic: Any, entropy: Entropy
    ) -> int:
        """The private answer: 0 for no, or the place of what was accepted, from 1.

        Total: no exception depends on the statistic.
        """
        ...


class Backend(Protocol):
    """An engine beside the records: answers typed questions, each from one scan."""

    def check(self, query: Query, batch: Batch) -> None:
        """Raise SourceError if the question cannot be put; reads the schema, no rows."""
        ...

    def answer(self, query: Query, batch: Batch) -> Any:
        """The `Statistic` of one batch; of a question with `by` a tuple of one a group."""
        ...


class Source(Protocol):
    """A source of batches: public windows or files."""

    @property
    def name(self) -> str:
        """Key of the source in the configuration."""
        ...

    @property
    def growing(self) -> bool:
        """Whether each batch holds the records of all batches before it."""
        ...

    def batches(self, now: int) -> Iterable[Batch]:
        """All batches sealed by `now`, in order; depends on public facts alone."""
        ...


class Log(Protocol):
    """A log of events; takes public facts only."""

    def __call__(self, event: str, /, **fields: str | int | None) -> None:
        """Write one event of the closed list."""
        ...


class Sink(Protocol):
    """A sink of releases, idempotent on the release id."""

    name: str

    def deliver(self, release: Release) -> None:
        """Publish; doing it twice leaves what doing it once leaves."""
        ...
