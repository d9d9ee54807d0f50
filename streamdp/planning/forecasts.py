"""Releases that other jobs would make of a simulated table, for a release that reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from streamdp import wiring
from streamdp.engine.draw import finish, get_ready
from streamdp.errors import ConfigurationError, WaitingError
from streamdp.kinds.charging import UnitCharging
from streamdp.kinds.grouped import rows_of
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.types import (
    Backend,
    Batch,
    Learned,
    ReadsReleases,
    ReleaseKind,
    Row,
    due_together,
    jobs_read,
)

if TYPE_CHECKING:
    from streamdp.config import Configuration
    from streamdp.kinds.section import ReleaseSection
    from streamdp.sources.section import SourceSection

Past = Mapping[str, tuple[Row, ...]]
"""Rows of the newest release before a batch, by job."""


def jobs_read_by(configuration: Configuration, section: ReleaseSection) -> tuple[str, ...]:
    """Jobs whose releases a release reads."""
    return jobs_read(wiring.kind(section, configuration.privacy.neighbours))


def told(kind: ReleaseKind, section: ReleaseSection, past: Past, group: int) -> ReleaseKind:
    """The kind of one group, told what was released before a batch."""
    if section.cut_by:
        chosen = section.groups[group]
        past = {job: rows_of(rows, section.by, chosen) for job, rows in past.items()}
    return cast("ReadsReleases", kind).informed(past)


def past_of_batches(
    configuration: Configuration,
    name: str,
    source: SourceSection,
    jobs: Sequence[str],
    batches: Sequence[Batch],
    backend: Backend,
) -> Mapping[str, Past]:
    """Releases that jobs would have made before each batch of a source, by the batch's key.

    Every job releases every batch at its configured price, once: trials share these releases. One
    that asks several batches at once releases the last of them; one that waits releases none.

    Privacy: none; `permission` decides whether a table may be simulated on.

    Raises:
        ConfigurationError: A job reads another source.
        SourceError: The table cannot be read.
    """
    sources = {**configuration.sources, name: source}
    kinds = _with_those_they_read(configuration.model_copy(update={"sources": sources}), jobs)
    _require_one_source(configuration, kinds, name)
    entropy, charging = PublicEntropy("forecasts"), UnitCharging(configuration.privacy.unit.bound())
    learned = {job: Learned(0, kind.signature(), kind.init()) for job, kind in kinds.items()}
    due = {
        job: {each.key: each for each in due_together(batches, (), together)}
        for job in kinds
        for together in (configuration.releases[job].asked_together,)
    }
    newest: dict[str, tuple[Row, ...]] = {}
    found: dict[str, Past] = {}
    for batch in batches:
        found[batch.key] = past = dict(newest)
        for job, kind in kinds.items():
            asked, now = due[job].get(batch.key), _informed(kind, past)
            if asked is None or now is None:
                continue
            ready = get_ready(now, learned[job], asked, charging)
            backend.check(ready.query, asked)
            done = finish(ready, backend.answer(ready.query, asked), entropy)
            learned[job], newest[job] = done.learned, done.published.rows
    return found


def _informed(kind: ReleaseKind, past: Past) -> ReleaseKind | None:
    """The kind of one batch, told what was released before it; None if it waits for groups."""
    try:
        return kind.informed(past) if isinstance(kind, ReadsReleases) else kind
    except WaitingError:
        return None


def _with_those_they_read(
    configuration: Configuration, jobs: Sequence[str]
) -> dict[str, ReleaseKind]:
    """The kinds of these jobs and of all whose releases they read in turn."""
    kinds: dict[str, ReleaseKind] = {}
    waiting = list(jobs)
    while waiting:
        job = waiting.pop()
        if job in kinds:
            continue
        kinds[job] = kind = wiring.release_kind(configuration, job)
        waiting += jobs_read(kind)
    return kinds


def _require_one_source(configuration: Configuration, jobs: Iterable[str], name: str) -> None:
    for job in jobs:
        if configuration.releases[job].source != name:
            raise ConfigurationError(
                f"{job} reads another source than {name}",
                where="simulate",
                hint="what is simulated reads one table: simulate releases of one source",
            )
