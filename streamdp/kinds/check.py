"""Checks of every release: by itself, and beside the other releases of a configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streamdp.kinds.registry import KINDS
from streamdp.kinds.section import CheckContext, GroupsFrom, Problem, ReleaseSection, RowsFrom
from streamdp.kinds.spec import KindSpec

Releases = Mapping[str, ReleaseSection]


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
