"""Releases from plan to sink: columns, charges, answers of gates, plans and outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from streamdp.types.batches import Batch
from streamdp.types.forms import Json, Row
from streamdp.types.questions import Query

ColumnType = Literal["text", "number", "integer"]

Role = Literal[
    "label", "value", "origin", "estimate", "lower", "upper", "error", "batch", "flag", "state"
]
"""The role of a column for its reader.

* label: names the row, as a group or a quantile does; the same in every release of a job.
* value: what was drawn.
* origin: whether the column `about` was itself drawn (`measured`), or computed from other noisy
  measurements of the batch (`inferred`); or the batch in which the row itself was found.
* estimate: follows from this release and earlier ones, such as a smoothed value.
* lower, upper: ends of an interval around the column `about`.
* error: what error to expect, a public number.
* batch: says something of the whole batch, or of the whole group, in each of its rows.
* flag: a warning about the row, that follows from releases alone; null where nothing is off.
* state: what became of the row, such as a key that was found just now: marked, and no warning.
"""

HARDLY_ANY = "hardly any records"
"""The flag of a batch or group with next to no records: values and intervals say nothing of it."""

Chart = Literal["lines", "shares", "choices"]
"""How a chart of its own shows a column over time.

* lines: a line for each row; one, where all rows say the same.
* shares: what each row has of the whole, stacked.
* choices: which candidate was drawn; all columns that ask for it name the candidate together.
"""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the rows of a release.

    Args:
        name: In rows, tables and files.
        type: Of its values; any may be null.
        role: What it is to a reader.
        unit: Of its values, in words; nothing where it has none or nobody said.
        about: Of an interval's end: the column it is around. Of an error: whose it is.
        level: Of an interval: how often it holds what it is around; of an error: how often the
            error is within. A share.
        chart: The chart that the kind brings for this column besides that of its values.
        units: Of its values in rows of some measures, where these differ: pairs of what the label
            `measure` says, and the unit.
    """

    name: str
    type: ColumnType
    role: Role
    unit: str = ""
    about: str = ""
    level: float | None = None
    chart: Chart | None = None
    units: tuple[tuple[str, str], ...] = ()

    def unit_of(self, measure: Any) -> str:
        """Unit of the values in rows of a measure."""
        return dict(self.units).get(str(measure), self.unit)

    def written(self) -> dict[str, Any]:
        """The column as a mapping, without units where it has none by measure."""
        whole: dict[str, Any] = asdict(self)
        if not self.units:
            del whole["units"]
        return whole

    @classmethod
    def read(cls, whole: Mapping[str, Any]) -> Column:
        """A column as it was written."""
        units = tuple((str(measure), str(unit)) for measure, unit in whole.get("units", ()))
        return cls(**{**whole, "units": units})


@dataclass(frozen=True, slots=True)
class Charge:
    """The price of a release, fixed before data is touched.

    Args:
        event: The draws and their parameters, in the ledger's vocabulary (`privacy.events`).
        epsilon_nano: Pure privacy loss in units of 1e-9, rounded up; None where there is none, as
            of Gaussian noise.
        rho_nano: The same in zero-concentrated differential privacy.
        delta_atto: The chance with which it may lose more, in units of 1e-18, rounded up.
    """

    event: Json
    epsilon_nano: int | None
    rho_nano: int
    delta_atto: int = 0


@dataclass(frozen=True, slots=True)
class Reservation:
    """A charge that is spent and not yet settled: row `seq` of the ledger."""

    seq: int
    scope: str
    job: str
    batch: str


@dataclass(frozen=True, slots=True)
class Run:
    """A charge for all batches that one gate ever tests, paid once: row `seq` of the ledger.

    It stays open until it is closed; every batch it tests must join it first.
    """

    seq: int
    scope: str
    job: str
    epsilon_nano: int | None
    rho_nano: int
    delta_atto: int = 0


FIRST_REST, LONGEST_REST = 120, 6 * 3600
"""Seconds a job rests after its second burnt charge in a row; they double."""

LONGEST_AFTER_DEATHS = 3600
"""Seconds it rests at most where the process died: it need not have been its fault."""


CHANCE = 4
"""Deaths of one batch from which on it, and not chance, is taken for what kills."""


def rest_after_deaths(deaths: int, of_batch: int) -> int:
    """Seconds of rest after deaths of the process with charges of a job, and of its last batch.

    A batch that is killed by chance is soon released: one that has died often rests as one does
    whose question fails.

    >>> [rest_after_deaths(deaths, 1) for deaths in (0, 1, 2, 3, 99)]
    [0, 0, 120, 240, 3600]
    >>> [rest_after_deaths(1, of_batch) for of_batch in (1, 3, 4, 5, 10, 99)]
    [0, 0, 480, 960, 21600, 21600]
    """
    found = min(rest_after(deaths), LONGEST_AFTER_DEATHS)
    return found if of_batch < CHANCE else max(found, rest_after(of_batch))


def rest_after(burns: int) -> int:
    """Seconds of rest after so many questions in a row that failed; none after one.

    >>> [rest_after(burns) for burns in (0, 1, 2, 3, 99)]
    [0, 0, 120, 240, 21600]
    """
    return 0 if burns < 2 else int(min(FIRST_REST * 2 ** min(burns - 2, 20), LONGEST_REST))


@dataclass(frozen=True, slots=True, repr=False)
class GateRun:
    """The open run of a gate.

    Private: `hidden` never leaves the engine, and its repr shows nothing.

    Args:
        run: Its charge.
        terms: What its noise was drawn for.
        hidden: The noisy threshold.
        answered: How many tests had an answer.
        asked: Key of the batch whose test has no end, or None.
    """

    run: Run
    terms: Json
    hidden: Json
    answered: int
    asked: str | None

    def __repr__(self) -> str:
        return "GateRun(<private>)"


@dataclass(frozen=True, slots=True)
class Past:
    """Earlier answers and releases that a gate may use; all public.

    Args:
        accepted: How often it has accepted.
        rows: The last release of its first job, or nothing.
    """

    accepted: int
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """The verdict of a gate on one batch, and its consequences.

    Args:
        batch: The batch.
        accepted: Whether it is yes.
        slot: When it may be seen (POSIX seconds).
        notices: What is owed to which sinks.
        holds: Jobs that are paused.
        waits: Whether a person must re-arm the gate.
    """

    batch: Batch
    accepted: bool
    slot: int
    notices: tuple[tuple[Release, tuple[str, ...]], ...]
    holds: tuple[str, ...]
    waits: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """A release before data is touched, from public facts alone.

    Args:
        query: What is asked of the batch, of all its records: who bounds units and cuts groups
            adds that.
        event: Of the draws, as they cost one record (`privacy.events`).
        mechanism: What `draw` needs.
        unit_event: Of draws whose price holds whatever a whole unit changes, in all groups
            together; None if there are none.
    """

    query: Query
    event: Json
    mechanism: Any
    unit_event: Json = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a draw.

    Args:
        rows: Published, as a table with the columns of the kind.
        auxiliary: What `learn`, `publish` and `measured` need beside the rows. It is paid for like
            them.
    """

    rows: tuple[Row, ...]
    auxiliary: Any = None


@dataclass(frozen=True, slots=True)
class Learned:
    """A learner's state as it is stored.

    Args:
        version: 1 after the first release of a job, and one more after each.
        signature: Public parameters of the kind that the state was learned under.
        state: What `ReleaseKind.learn` returned.
    """

    version: int
    signature: Json
    state: Json


@dataclass(frozen=True, slots=True)
class Release:
    """A committed release, as the archive holds it and the sinks receive it.

    Its `columns` say what its rows hold; releases from before they were kept have none.
    `epsilon_nano` is its pure loss; one that has none has its zero-concentrated loss in `rho_nano`.
    `delta_atto` is the chance to lose more, in units of 1e-18.
    """

    id: str
    job: str
    source: str
    batch: str
    window_start: int | None
    window_end: int | None
    kind: str
    epsilon_nano: int | None
    released_at: int
    rows: tuple[Row, ...]
    columns: tuple[Column, ...] = ()
    rho_nano: int | None = None
    delta_atto: int = 0


@dataclass(frozen=True, slots=True)
class Delivery:
    """A release that one sink has not confirmed."""

    release_id: str
    sink: str
    attempts: int


@dataclass(frozen=True, slots=True)
class Failure:
    """A delivery that failed.

    Args:
        delivery: Which.
        reason: Why, in public words.
        dead: Whether it waits for a person from now on.
    """

    delivery: Delivery
    reason: str
    dead: bool
