"""What errors to expect of first releases, and what each bound on a unit's records costs them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from streamdp.errors import ConfigurationError
from streamdp.privacy.amounts import NANO
from streamdp.types import MOST_ROWS_PER_UNIT, Json

if TYPE_CHECKING:
    from streamdp.config import Configuration
    from streamdp.database import Database
    from streamdp.kinds.spec import LeftOut, Simulates
    from streamdp.planning.costs import Prices
    from streamdp.privacy.price import Price

    Progress = Callable[[list[str]], AbstractContextManager[Iterable[str]]]

UNASKED = 20
"""Jobs whose first releases are simulated though nobody named them: each that differs takes about a
second."""


class Simulations:
    """Expected accuracy of jobs; equal simulations are run once.

    Args:
        configuration: Of the jobs.
        prices: Of the jobs, with their kinds.
        database: The store, where counts may have been released; None before there is one.
        wanted: An error that a price is sought for.
        in_unit: The same in the unit of what is released: records, or that of a column.
    """

    def __init__(
        self,
        configuration: Configuration,
        prices: Prices,
        database: Database | None,
        wanted: float | None,
        in_unit: float | None = None,
    ) -> None:
        self._configuration, self._prices = configuration, prices
        self._database, self._wanted, self._in_unit = database, wanted, in_unit
        self._known: dict[Hashable, dict[str, Json]] = {}

    def foretell(
        self,
        jobs: Iterable[str],
        *,
        named: bool,
        progress: Progress = nullcontext,
    ) -> tuple[dict[str, dict[str, Json]], int]:
        """Expected errors of jobs, and for how many of them they were left out.

        Left out are all simulations where there are many jobs and they were not named one by one.
        """
        found = {job: self._kind(job) for job in jobs}
        ways = {job: self._simulation(job, kind) for job, kind in found.items()}
        simulated = {job for job, way in ways.items() if way is not None}
        left = simulated if len(simulated) > UNASKED and not named else set()
        rows: dict[str, dict[str, Json]] = {}
        with progress([job for job in found if job not in left]) as asked:
            for job in asked:
                rows[job] = self._shared(job, found[job], ways[job])
        return {job: rows.get(job, {}) for job in found}, len(left)

    def _shared(self, job: str, kind: Any, way: Simulates | None) -> dict[str, Json]:
        if way is None:
            return self._row(job, kind)
        key = way.key(kind)
        if key not in self._known:
            self._known[key] = self._row(job, kind)
        return self._known[key]

    def _kind(self, job: str) -> Any:
        """The kind of one group, with the records that were counted."""
        from streamdp import wiring
        from streamdp.kinds.configured import counted
        from streamdp.store.archive import last_release

        of = self._configuration
        section = of.releases[job]
        if not section.by and section.rows_from is None:
            return self._prices.kind(job)
        dialect = of.sources[section.source].engine.dialect
        kind = wiring.kind(section, of.privacy.neighbours, of.privacy.unit.rows, dialect)
        if section.rows_from is None or self._database is None:
            return kind
        released = last_release(self._database, section.rows_from.job)
        return counted(of.releases[job], of.releases, kind, released)

    def _simulation(self, job: str, kind: Any) -> Simulates | None:
        """How the figures of a job are simulated; None if they are not."""
        from streamdp.kinds.spec import Simulates, spec_of

        accuracy = spec_of(self._configuration.releases[job]).accuracy
        return accuracy if isinstance(accuracy, Simulates) and accuracy.simulates(kind) else None

    def _with_cap(self, job: str, price: Price) -> str:
        """A price for a unit, and a word where the batch cap forbids it."""
        caps = self._configuration.caps_of(self._configuration.releases[job].source)
        shown = f"{float(price.amount):g}"
        if caps.measure == price.measure and price.amount * NANO > caps.batch_nano:
            return f"{shown}, above the batch cap of {caps.batch_nano / NANO:g}"
        return shown

    def _row(self, job: str, kind: Any) -> dict[str, Json]:
        """Expected errors, and the price for a wanted one."""
        from streamdp.kinds.spec import spec_of

        section, rows = self._configuration.releases[job], self._configuration.privacy.unit.rows
        accuracy = spec_of(section).accuracy
        if accuracy is None:
            return {}
        expected: Mapping[str, Json] = accuracy.expected(kind)
        row = dict(expected)
        if not any(row.values()) and section.about_errors():
            row["errors"] = section.about_errors()
        if self._wanted is not None:
            needed = accuracy.price_for(kind, self._wanted)
            shown = None if needed is None else self._with_cap(job, needed.of_unit(rows))
            row[f"{section.price.measure}_for_{self._wanted:g}"] = shown
        if self._in_unit is not None:
            row |= self._prices_in_unit(job, kind, self._in_unit)
        return row

    def _prices_in_unit(self, job: str, kind: Any, error: float) -> dict[str, Json]:
        """Prices at which each part of a release is so near, and the word of a cap."""
        from streamdp.kinds.spec import InUnit, spec_of

        section, rows = self._configuration.releases[job], self._configuration.privacy.unit.rows
        accuracy = spec_of(section).accuracy
        if not isinstance(accuracy, InUnit):
            return {}
        return {
            f"{section.price.measure}_for_{name}_within_{error:g}": (
                None if needed is None else self._with_cap(job, needed.of_unit(rows))
            )
            for name, needed in accuracy.prices_for(kind, error).items()
        }


def bounds_of(text: str) -> tuple[int, ...]:
    """Bounds that a person lists.

    Raises:
        ConfigurationError: They are no whole numbers, or bounds that cannot be.

    >>> bounds_of("3,1,2")
    (1, 2, 3)
    """
    try:
        bounds = tuple(sorted({int(each) for each in text.split(",")}))
    except ValueError:
        bounds = ()
    if not bounds or not 1 <= bounds[0] <= bounds[-1] <= MOST_ROWS_PER_UNIT:
        raise ConfigurationError(
            f"--rows {text} is no list of bounds",
            hint=f"write whole numbers from 1 to {MOST_ROWS_PER_UNIT}: --rows 1,2,3,5",
        )
    return bounds


def rows_of_bounds(
    configuration: Configuration,
    database: Database | None,
    jobs: Sequence[str],
    bounds: Sequence[int],
) -> Iterator[dict[str, Json]]:
    """Return the errors of a first release and the share left out, by job and bound.

    Raises:
        ConfigurationError: Each record is a unit of its own.
    """
    if configuration.privacy.unit.column is None:
        raise ConfigurationError(
            "each record is a unit of its own: there is no bound to choose",
            hint="`privacy.unit.column` says whose a record is",
        )
    for job in jobs:
        told, by = _told(configuration, database, configuration.releases[job].source)
        for bound in bounds:
            row: dict[str, Json] = {"job": job, "rows": bound, **_errors(configuration, job, bound)}
            yield row | {"left_out": _share(told, bound), "told_by": by}


def _errors(configuration: Configuration, job: str, bound: int) -> dict[str, Json]:
    """Expected errors of a first release, at the configured price."""
    from streamdp import wiring
    from streamdp.kinds.spec import spec_of

    section = configuration.releases[job]
    accuracy = spec_of(section).accuracy
    if accuracy is None:
        return {}
    dialect = configuration.sources[section.source].engine.dialect
    kind = wiring.kind(section, configuration.privacy.neighbours, bound, dialect)
    return dict(accuracy.expected(kind))


def _told(
    configuration: Configuration, database: Database | None, source: str
) -> tuple[Mapping[int, LeftOut], str | None]:
    """What each bound leaves out, by the newest release of a source that tells it, and its job."""
    from streamdp.kinds.spec import spec_of
    from streamdp.store.archive import last_release

    for job, section in configuration.releases.items():
        read = spec_of(section).left_out
        if section.source != source or read is None or database is None:
            continue
        released = last_release(database, job)
        found = {} if released is None else read(section, released.rows)
        if found:
            return found, job
    return {}, None


def _share(told: Mapping[int, LeftOut], bound: int) -> str:
    """Write the share that a bound leaves out; between two published bounds, its range.

    >>> from streamdp.kinds.spec import LeftOut
    >>> _share({1: LeftOut(0.5, 0.4, 0.6), 5: LeftOut(0.1, 0.05, 0.2)}, 3)
    '5.0% to 60.0%'
    """
    below = [each for each in told if each <= bound]
    above = [each for each in told if each >= bound]
    if not told:
        return "not told: no release has `records_a_unit` of this source"
    if not above:
        return f"of at most {max(told)} a unit, nothing"
    lower, upper = told[min(above)].lower, told[max(below)].upper if below else 1.0
    if bound in told:
        return f"{told[bound].share:.1%} ({lower:.1%} to {upper:.1%})"
    return f"{lower:.1%} to {upper:.1%}"
