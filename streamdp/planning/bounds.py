"""The part of `streamdp plan` that is about `rows`: what each bound on a unit's records costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from streamdp.errors import ConfigurationError
from streamdp.kinds.spec import LeftOut
from streamdp.types import MOST_ROWS_PER_UNIT

if TYPE_CHECKING:
    from streamdp.config import Configuration
    from streamdp.database import Database
    from streamdp.types import Json


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
    from streamdp.kinds.registry import spec_of

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
    from streamdp.kinds.registry import spec_of
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
