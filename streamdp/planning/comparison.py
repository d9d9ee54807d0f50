"""Comparisons: variants of a configured release, at several prices, on one stream.

A release that reads those of other jobs is given what these would release of the simulated table.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError

from streamdp import wiring
from streamdp.backends.duckdb.section import DuckDBEngine
from streamdp.engine.draw import finish, get_ready
from streamdp.errors import ConfigurationError, WaitingError
from streamdp.files import file_format
from streamdp.kinds.charging import UnitCharging
from streamdp.kinds.grouped import rows_of
from streamdp.kinds.spec import KINDS, spec_of
from streamdp.kinds.study import Stream, Study
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.simulation.comparison import TrialSetting
from streamdp.simulation.table import refuse_production, require_no_production_table, table_stream
from streamdp.sources.windows import Windows
from streamdp.text import require_name
from streamdp.types import (
    Backend,
    Batch,
    Learned,
    Neighbours,
    Query,
    ReadsReleases,
    ReleaseKind,
    Row,
    due_together,
    jobs_read,
    with_groups,
)

if TYPE_CHECKING:
    from streamdp.config import Configuration
    from streamdp.kinds.section import GroupsFrom, ReleaseSection
    from streamdp.sources.section import SourceSection

    Groups = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Variants:
    """The release kinds of a comparison, made of one configured release.

    Args:
        study: How the kind is simulated.
        section: The release.
        neighbours: Of the configuration.
        unit_rows: The most records of one unit that count.
        rows: About how many records a batch has, if the release does not say.
    """

    study: Study
    section: ReleaseSection
    neighbours: Neighbours
    unit_rows: int
    rows: int

    def kind(self, variant: str, price: Fraction, stream: Stream) -> ReleaseKind:
        """The kind as production would make it, with the features a synthetic stream brings.

        Raises:
            ConfigurationError: The release does not admit this variant or price.
        """
        section = self.section.model_copy(update={self.section.price.measure: price})
        section = _checked(self.study.variant(section, variant, self.rows))
        kind = wiring.kind(section, self.neighbours, self.unit_rows)
        return self.study.simulated(kind, stream)


def study_of(section: ReleaseSection) -> Study:
    """How a release is simulated.

    Raises:
        ConfigurationError: Its kind cannot be.
    """
    made = spec_of(section).study
    if made is None:
        known = ", ".join(spec.name for spec in KINDS.all() if spec.study is not None)
        raise ConfigurationError(
            f"releases of kind {section.kind} cannot be simulated",
            where="simulate",
            hint=f"name a release of a kind that can be: {known}; `plan` foretells the errors of"
            " all others",
        )
    return made()


def require_permission(
    configuration: Configuration, section: ReleaseSection, table: str | None
) -> None:
    """Refuse the source's own records, and a table that any source of the configuration reads.

    Raises:
        ConfigurationError: Names the source.
    """
    if table is None:
        refuse_production(section.source)
    paths = {name: each.path for name, each in configuration.sources.items() if each.path}
    require_no_production_table(os.path.expanduser(table), paths)


@dataclass(frozen=True, slots=True)
class Scene:
    """Where a release is replayed.

    Args:
        stream: Name of a synthetic one, or `table`.
        table: Files in place of the source's own.
        group: Values of one group of a release by groups, with commas between.
        length: Number of batches; None for all.
    """

    stream: str = "table"
    table: str | None = None
    group: str | None = None
    length: int | None = None


def comparison(configuration: Configuration, section: ReleaseSection, scene: Scene) -> TrialSetting:
    """Comparison of a release, in the unit of a stream.

    Of a release by groups it is one group: each has a learner of its own. One that another job
    finds is there in some batches alone, and these are the stream.

    Raises:
        SourceError: The table cannot be read or holds no batches.
        ConfigurationError: The release has no such group or stream.
    """
    study, privacy = study_of(section), configuration.privacy
    if scene.stream != "table":
        section = on_stream(section, study, scene.stream)
        made = partial(_synthetic, study, section, scene)
        rows = section.expected_rows or 1
        variants = Variants(study, section, privacy.neighbours, privacy.unit.rows, rows)
        return TrialSetting(study, made, variants.kind)
    section, stream = _table(configuration, section, study, scene)
    total = sum(map(study.rows, stream.counts))
    rows = max(1, round(total / len(stream.counts)))
    variants = Variants(study, section, privacy.neighbours, privacy.unit.rows, rows)
    return TrialSetting(study, partial(_same, stream), variants.kind)


def on_stream(section: ReleaseSection, study: Study, stream: str) -> ReleaseSection:
    """The release in the unit of a synthetic stream; as it is on a table.

    Raises:
        ConfigurationError: There is no such stream.
    """
    require_name(stream, ("table", *study.streams), "stream")
    return section if stream == "table" else study.on_stream(section, stream)


def _table(
    configuration: Configuration, section: ReleaseSection, study: Study, scene: Scene
) -> tuple[ReleaseSection, Stream]:
    """The release, and the table, asked as the first release would ask it.

    A release that reads others is told what they would have released before each batch. Of groups
    that another job finds, the release is left with the one that is simulated.
    """
    reads, privacy = jobs_read_by(configuration, section), configuration.privacy
    named = section.groups_from
    finding = () if named is None else (named.job,)
    before = tuple(dict.fromkeys((*finding, *reads)))
    typed = [section, *(configuration.releases[job] for job in before)]
    source = _read_from(configuration, section, typed, scene.table)
    every = list(source.source(section.source).batches(int(time.time())))
    batches, reader = every[: scene.length], source.backend()
    past = past_of_batches(configuration, section.source, source, before, batches, reader)
    batches = due_together(batches, (), section.asked_together)
    groups: Mapping[str, Groups] = dict.fromkeys(past, section.groups)
    if named is not None:
        section, groups = _found(configuration, section, named, past, scene.group)
        batches = [batch for batch in batches if batch.key in groups]
    group = _group(section, scene.group)
    dialect, zone = source.engine.dialect, source.zone
    kind = wiring.kind(section, privacy.neighbours, privacy.unit.rows, dialect, zone)
    charging = UnitCharging(privacy.unit.bound())
    question = study.question(kind, batches[0]) if batches else None

    def asked(batch: Batch) -> Query:
        about = question
        if reads:
            about = study.question(told(kind, section, past[batch.key], group), batch)
        assert about is not None, "there is a batch"  # noqa: S101
        cut = (section.by, groups[batch.key])
        by_groups = with_groups(about, *cut) if section.cut_by else about
        return charging.bounded(by_groups, batch)

    return section, table_stream(section.source, batches, reader, asked, group)


def _found(
    configuration: Configuration,
    section: ReleaseSection,
    named: GroupsFrom,
    past: Mapping[str, Past],
    wanted: str | None,
) -> tuple[ReleaseSection, Mapping[str, Groups]]:
    """The release of one of the groups that a job finds, and all groups of each batch it is in.

    The one that is simulated comes first. The others are those that the job has found by then: a
    record of a unit that counts for one of them may not count for this one.

    Raises:
        ConfigurationError: The group was not found, or none was named of several.
    """
    finding = configuration.releases[named.job]
    read = spec_of(finding).groups
    assert read is not None, "checked when the configuration was loaded"  # noqa: S101
    at = {key: read(finding, named, rows.get(named.job, ())) for key, rows in past.items()}
    every = {",".join(group): group for found in at.values() for group in found}
    if not every:
        raise ConfigurationError(
            f"{named.job} finds no group in this table before its last batch",
            where="simulate",
            hint="simulate on a longer table, or give it more epsilon or a wider window",
        )
    if wanted is None and len(every) == 1:
        (wanted,) = every
    require_name(wanted or "", every, "group")
    chosen = every[wanted or ""]
    alone = section.model_copy(update={"groups": (chosen,), "groups_from": None})
    return alone, {
        key: (chosen, *(group for group in found if group != chosen))
        for key, found in at.items()
        if chosen in found
    }


def _group(section: ReleaseSection, name: str | None) -> int:
    """Place of a group among those of the release; 0 where there are none."""
    names = [",".join(group) for group in section.groups]
    if name is None and len(names) < 2:
        return 0
    require_name(name or "", names, "group")
    return names.index(name or "")


def admitted(section: ReleaseSection, study: Study, asked: Collection[str]) -> list[str]:
    """The variants that were asked for; of all, those that the release admits.

    Raises:
        ConfigurationError: One that was asked for is unknown or not admitted.
    """
    rows = section.expected_rows or 1
    for name in asked:
        require_name(name, study.variants, "learner")
        _checked(study.variant(section, name, rows))
    if asked:
        return list(dict.fromkeys(asked))
    return [name for name in study.variants if _admits(section, study, name)]


def _checked(section: ReleaseSection) -> ReleaseSection:
    """A changed section, checked as one that was read from a file."""
    try:
        type(section).model_validate(section.model_dump(exclude={"schedule"}, by_alias=True))
    except ValidationError as error:
        text = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise ConfigurationError(text, where="simulate") from None
    return section


def _admits(section: ReleaseSection, study: Study, variant: str) -> bool:
    try:
        _checked(study.variant(section, variant, section.expected_rows or 1))
    except ConfigurationError:
        return False
    return True


def _read_from(
    configuration: Configuration,
    section: ReleaseSection,
    typed: Iterable[ReleaseSection],
    table: str | None,
) -> SourceSection:
    """The source, or files or a DuckDB database in its place, whatever its engine.

    Files have the columns that a query makes; a database has the table that it reads. Those of text
    hold a number where one is released, and a time where batches are cut.
    """
    source = configuration.sources[section.source]
    if table is None:
        return source
    path = os.path.abspath(os.path.expanduser(table))
    format = file_format(path) or source.format
    changed: dict[str, Any] = {
        "path": path,
        "format": format,
        "engine": DuckDBEngine(kind="duckdb"),
    }
    if format in ("csv", "jsonl"):
        unit = configuration.privacy.unit.column
        types = dict.fromkeys((*section.by, *([unit] if unit else [])), "text")
        if isinstance(source.batches, Windows):
            types[source.batches.column] = "timestamp"
        types |= dict.fromkeys(_numbers(typed), "number")
        changed["types"] = {**types, **source.types}
    tables = {} if format is None else {"table": None, "query": None}
    return source.model_copy(update=changed | tables)


def _numbers(typed: Iterable[ReleaseSection]) -> set[str]:
    """Columns that hold numbers, of releases that can be simulated."""
    made = [(each, spec_of(each).study) for each in typed]
    return {name for each, study in made if study is not None for name in study().numbers(each)}


def _synthetic(study: Study, section: ReleaseSection, scene: Scene, seed: int) -> Stream:
    return study.synthetic(section, scene.stream, seed, scene.length)


def _same(stream: Stream, seed: int) -> Stream:
    """The table, which is the same for every seed: only the draws differ."""
    return stream


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

    Privacy: none; `simulation.table` decides whether a table may be simulated on.

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
