"""The kind of a configured release, of its groups or found ones, and checks beside other releases.

`RowsFromJob` expects as many records as another job's releases say; the groups of `FoundGroups`
are the keys that another job has released.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from streamdp.errors import WaitingError
from streamdp.kinds.charging import Group
from streamdp.kinds.section import CheckContext, GroupsFrom, Problem, ReleaseSection, RowsFrom
from streamdp.kinds.spec import KINDS, KindSpec, RowCount, spec_of
from streamdp.types import (
    Batch,
    Column,
    Entropy,
    ExpectsRows,
    Explains,
    HasParts,
    History,
    Json,
    Lesson,
    Measurement,
    Measures,
    Outcome,
    Plan,
    ReadsReleases,
    ReleaseKind,
    Row,
    jobs_read,
)

if TYPE_CHECKING:
    from streamdp.kinds.spec import BuildContext
    from streamdp.types import Release

Releases = Mapping[str, "ReleaseSection"]


def release_kind(section: ReleaseSection, releases: Releases, context: BuildContext) -> ReleaseKind:
    """The kind of a configured release: of a batch, or of each public group of it.

    Args:
        section: The release.
        releases: All of the configuration: one may find groups or count records for another.
        context: Unit and source, whatever its number of groups.
    """
    made = (
        _of_groups(section, context)
        if section.groups_from is None
        else _of_found_groups(section, section.groups_from, releases, context)
    )
    if section.rows_from is None:
        return made

    count = _count(releases, section.rows_from)
    return RowsFromJob(cast("ExpectsRows", made), section.rows_from.job, count)


def _of_found_groups(
    section: ReleaseSection, named: GroupsFrom, releases: Releases, context: BuildContext
) -> ReleaseKind:
    """The kind of the groups that a job finds; what is expected of them is alike."""
    finding = releases[named.job]
    groups = spec_of(finding).groups
    assert groups is not None, "checked when the configuration was loaded"  # noqa: S101

    def of(found: tuple[tuple[str, ...], ...]) -> ReleaseKind:
        """The kind of some groups."""
        return _of_groups(section.model_copy(update={"groups": found}), context)

    like = of((("",) * len(section.by),))
    return FoundGroups(of, like, named.job, partial(groups, finding, named))


def counted(
    section: ReleaseSection, releases: Releases, made: ReleaseKind, released: Release | None
) -> ReleaseKind:
    """A kind without groups, as it is once its records were counted.

    Args:
        section: The release.
        releases: All of the configuration.
        made: Its kind.
        released: By the job that counts; None if nothing was.
    """
    named = section.rows_from
    if named is None or released is None:
        return made
    return cast("ExpectsRows", made).expecting(_count(releases, named)(released.rows))


def _count(releases: Releases, named: RowsFrom) -> RowCount:
    """Reads the records off a release of the job that counts."""
    counting = releases[named.job]
    rows = spec_of(counting).rows
    count = rows and rows(counting, named.measure)
    assert count is not None, "checked when the configuration was loaded"  # noqa: S101
    return count


def _of_groups(section: ReleaseSection, context: BuildContext) -> ReleaseKind:
    one = kind(section, context)
    if not section.by or spec_of(section).pools_groups:
        return one
    from streamdp.kinds.grouped import Grouped

    own = {
        group: kind(section.with_rows_of(group), context)
        for group in section.groups
        if ",".join(group) in section.group_rows
    }
    return Grouped(one, section.by, section.groups, context.neighbours, own)


def kind(section: ReleaseSection, context: BuildContext) -> ReleaseKind:
    """The kind of one group of records of a release, at the price of one record."""
    named = section.groups_from
    groups = (len(section.groups) or 1) if named is None else named.most
    return spec_of(section).build(section, replace(context, groups=groups))


@dataclass(frozen=True, slots=True)
class RowsFromJob:
    """A kind, and where it is told how many records a batch has.

    Args:
        of: The kind, as it is while nothing was counted.
        job: Whose releases count.
        count: Reads the records of each group off a release of that job.

    Privacy: what the kind is told follows from a release of an earlier batch, so the privacy loss
    of both is that of their adaptive composition, the sum of their prices. Question and price stay
    those of `of` (`types.ExpectsRows`).
    """

    of: ExpectsRows
    job: str
    count: RowCount

    @property
    def name(self) -> str:
        """Name of the kind that is informed."""
        return self.of.name

    @property
    def columns(self) -> tuple[Column, ...]:
        """Columns of the kind that is informed."""
        return self.of.columns

    @property
    def jobs(self) -> tuple[str, ...]:
        """The job whose releases count the rows."""
        return (self.job,)

    def informed(self, past: Mapping[str, tuple[Row, ...]]) -> ReleaseKind:
        """The kind for one batch, told what was counted before it."""
        if self.job not in past:
            return self.of
        return self.of.expecting(self.count(past[self.job]))

    def signature(self) -> Json:
        """Signature of the kind that is informed: states are kept whatever is counted."""
        return self.of.signature()

    def init(self) -> Json:
        """Initial state of the kind that is informed."""
        return self.of.init()

    def plan(self, state: Json, batch: Batch) -> Plan:
        """The plan under the configured rows, used until something was counted."""
        return self.of.plan(state, batch)

    def draw(self, plan: Plan, statistic: Any, entropy: Entropy) -> Outcome:
        """The draw under the configured rows, used until something was counted."""
        return self.of.draw(plan, statistic, entropy)

    def learn(self, state: Json, plan: Plan, outcome: Outcome) -> Json:
        """The next state under the configured rows, used until something was counted."""
        return self.of.learn(state, plan, outcome)

    def measured(self, plan: Plan, outcome: Outcome) -> tuple[Measurement, ...]:
        """Return what the kind that is informed measured."""
        return self.of.measured(plan, outcome) if isinstance(self.of, Measures) else ()

    def replayed(self, state: Json, batch: Batch, measurements: tuple[Measurement, ...]) -> Json:
        """Return the state after a release, as far as the kind that is informed learns of it."""
        if not isinstance(self.of, Measures):
            return None
        return self.of.replayed(state, batch, measurements)

    def lessons(self, history: History) -> Sequence[Lesson]:
        """Return what the kind that is informed has learned."""
        return self.of.lessons(history) if isinstance(self.of, Explains) else ()

    def parts(self) -> tuple[str, ...]:
        """Return the parts of the kind that is informed."""
        return self.of.parts() if isinstance(self.of, HasParts) else ("",)

    def part(self, name: str, history: History) -> tuple[object, History]:
        """Return the kind of one part, and its history."""
        return self.of.part(name, history) if isinstance(self.of, HasParts) else (self.of, history)

    def publish(self, state: Json, outcome: Outcome) -> Outcome:
        """The outcome under the configured rows, used until something was counted."""
        return self.of.publish(state, outcome)


@dataclass(frozen=True, slots=True)
class FoundGroups:
    """A kind of groups that come and go.

    Args:
        of: Makes the kind for some groups.
        like: The same for one group of no name: its price, columns and learned states are those of
            all others.
        job: Finds the groups.
        read: Reads them off the rows of one of its releases, at most so many as are configured.

    Privacy: the groups of a batch follow from what the job released: before it, where batches are
    windows of time; of any other batch, where they are files, which have no order. What it found
    may have come of the batch itself: the loss of both is that of their adaptive composition, the
    sum of their prices, and each is charged. A record is in one group at most whatever the groups
    are, so the price is that of one group, however many there are. Records of other groups do not
    count.
    """

    of: Callable[[tuple[Group, ...]], ReleaseKind]
    like: ReleaseKind
    job: str
    read: Callable[[Sequence[Row]], tuple[Group, ...]]

    @property
    def name(self) -> str:
        """Name of the kind."""
        return self.like.name

    @property
    def columns(self) -> tuple[Column, ...]:
        """Columns of the kind, with those of groups."""
        return self.like.columns

    @property
    def jobs(self) -> tuple[str, ...]:
        """The job that finds groups, and those that the kind reads."""
        others = jobs_read(self.like)
        return (self.job, *(job for job in others if job != self.job))

    def informed(self, past: Mapping[str, tuple[Row, ...]]) -> ReleaseKind:
        """The kind of one batch.

        Raises:
            WaitingError: No group was found before it.
        """
        groups = self.read(past.get(self.job, ()))
        if not groups:
            raise WaitingError(
                f"no group was found before this batch, so it is not released: {self.job} finds"
                " them",
                hint="nothing was spent; the first release is that of the batch after which groups"
                " are known",
            )
        made = self.of(groups)
        return made.informed(past) if isinstance(made, ReadsReleases) else made

    def lessons(self, history: History) -> Sequence[Lesson]:
        """Return what the kind has learned of all groups together."""
        return self.like.lessons(history) if isinstance(self.like, Explains) else ()

    def signature(self) -> Json:
        """Return the kind's signature: groups come and go, and what was learned of them stays."""
        return self.like.signature()

    def init(self) -> Json:
        """No state of any group."""
        return self.like.init()

    def plan(self, state: Json, batch: Batch) -> Plan:
        """The plan of one group, whose price is that of all."""
        return self.like.plan(state, batch)

    def draw(self, plan: Plan, statistic: Any, entropy: Entropy) -> Outcome:
        """The draw of that plan."""
        return self.like.draw(plan, statistic, entropy)

    def learn(self, state: Json, plan: Plan, outcome: Outcome) -> Json:
        """The next state of that plan."""
        return self.like.learn(state, plan, outcome)

    def publish(self, state: Json, outcome: Outcome) -> Outcome:
        """The rows of that plan."""
        return self.like.publish(state, outcome)


def problems(
    release: ReleaseSection, releases: Releases, context: CheckContext, *, growing: bool
) -> Iterator[Problem]:
    """Problems of the condition, and those that the kind finds in its keys and other releases.

    Args:
        release: Of any kind.
        releases: All of the configuration, by name.
        context: Unit, source and what the other releases publish.
        growing: Whether the batches of its source grow.
    """
    spec = KINDS.find(release.kind)
    if release.where is not None:
        found = context.problem_of(release.where, ("where",))
        yield from () if found is None else (found,)
    if spec is not None:
        yield from spec.check(release, context)
    if release.rows_from is not None and spec is not None:
        yield from _rows_problems(release, releases, release.rows_from, spec)
    if release.asked_together > 1 and growing:
        what = "growing batches all begin with the first record, so none follows another"
        yield Problem(("window",), what, "leave it out: each batch holds those before it")
    if release.groups_from is not None:
        yield from _groups_problems(release, releases, release.groups_from)


def _groups_problems(
    release: ReleaseSection, releases: Releases, named: GroupsFrom
) -> Iterator[Problem]:
    """Require that groups come from a job that finds them among the same records."""
    other = releases.get(named.job)
    found = None if other is None else KINDS.find(other.kind)
    if other is None or found is None or found.groups is None:
        what = f"{named.job!r} is no release that finds groups"
        yield Problem(("groups_from", "from"), what, "name a release of a kind that finds keys")
        return
    if (other.source, other.by) != (release.source, release.by):
        what = f"{named.job} finds other groups"
        hint = "let both be of the same source, with the same columns under by"
        yield Problem(("groups_from", "from"), what, hint)
    if release.gate is not None:
        what = "a gate looks at the first release of its job, which has no groups yet"
        yield Problem(("gate",), what, "leave it out, or list the groups")


def _rows_problems(
    release: ReleaseSection, releases: Releases, named: RowsFrom, spec: KindSpec
) -> Iterator[Problem]:
    """Require that a count used as expected rows counts the same records."""
    if not spec.expects_rows:
        what = f"releases of kind {release.kind} take no counts of others"
        yield Problem(("rows_from",), what, "leave it out: expected_rows says how many there are")
        return
    other = releases.get(named.job)
    found = None if other is None else KINDS.find(other.kind)
    if other is None or found is None or found.rows is None:
        what = f"{named.job!r} is no release that counts records"
        yield Problem(("rows_from", "job"), what, "name a release of counts")
        return
    if found.rows(other, named.measure) is None:
        what = f"{named.measure!r} does not count all records of {named.job}"
        yield Problem(("rows_from", "measure"), what, "name a measure that is a plain count")
    if len({(each.source, each.where, each.by) for each in (release, other)}) != 1:
        what = f"{named.job} counts other records"
        hint = "count those of the same source with the same where and by"
        yield Problem(("rows_from", "job"), what, hint)
