"""The kind of a configured release: of its groups, of those that a job finds, of counted rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast

from streamdp.kinds.registry import spec_of
from streamdp.types import ReleaseKind

if TYPE_CHECKING:
    from streamdp.kinds.section import GroupsFrom, ReleaseSection, RowsFrom
    from streamdp.kinds.spec import BuildContext, RowCount
    from streamdp.types import ExpectsRows, Release

    Releases = Mapping[str, ReleaseSection]


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
    from streamdp.kinds.counted import Counted

    count = _count(releases, section.rows_from)
    return Counted(cast("ExpectsRows", made), section.rows_from.job, count)


def _of_found_groups(
    section: ReleaseSection, named: GroupsFrom, releases: Releases, context: BuildContext
) -> ReleaseKind:
    """The kind of the groups that a job finds; what is expected of them is alike."""
    from streamdp.kinds.found_groups import FoundGroups

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
