"""Release kinds, by what the configuration names, for any source and unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

from streamdp.config.base.formats import file_format, format_of
from streamdp.errors import InternalError
from streamdp.kinds.registry import find
from streamdp.types import Batch, CellCounts, CellQuery, Format, Neighbours, ReleaseKind, UnitBound

if TYPE_CHECKING:
    from streamdp.config.base.dialects import Dialect
    from streamdp.config.base.releases import GroupsFrom, ReleaseSection, RowsFrom
    from streamdp.config.model import Configuration
    from streamdp.config.sections.units import Unit
    from streamdp.kinds.charging import UnitCharging
    from streamdp.kinds.spec import KindSpec, RowCount
    from streamdp.types import ExpectsRows, Release


def release_kind(configuration: Configuration, name: str) -> ReleaseKind:
    """The kind of a configured release: of a batch, or of each public group of it."""
    section = configuration.releases[name]
    made = (
        _of_groups(configuration, section)
        if section.groups_from is None
        else _of_found_groups(configuration, section, section.groups_from)
    )
    if section.rows_from is None:
        return made
    from streamdp.kinds.counted import Counted

    count = _count(configuration, section.rows_from)
    return Counted(cast("ExpectsRows", made), section.rows_from.job, count)


def _of_found_groups(
    configuration: Configuration, section: ReleaseSection, named: GroupsFrom
) -> ReleaseKind:
    """The kind of the groups that a job finds; what is expected of them is alike."""
    from streamdp.kinds.found_groups import FoundGroups

    finding = configuration.releases[named.job]
    groups = spec_of(finding).groups
    assert groups is not None, "checked when the configuration was loaded"  # noqa: S101

    def of(found: tuple[tuple[str, ...], ...]) -> ReleaseKind:
        """The kind of some groups."""
        return _of_groups(configuration, section.model_copy(update={"groups": found}))

    like = of((("",) * len(section.by),))
    return FoundGroups(of, like, named.job, partial(groups, finding, named))


def counted(
    configuration: Configuration, name: str, made: ReleaseKind, released: Release | None
) -> ReleaseKind:
    """A kind without groups, as it is once its records were counted.

    Args:
        configuration: Of the release.
        name: Of the release.
        made: Its kind.
        released: By the job that counts; None if nothing was.
    """
    named = configuration.releases[name].rows_from
    if named is None or released is None:
        return made
    return cast("ExpectsRows", made).expecting(_count(configuration, named)(released.rows))


def _count(configuration: Configuration, named: RowsFrom) -> RowCount:
    """Reads the records off a release of the job that counts."""
    counting = configuration.releases[named.job]
    rows = spec_of(counting).rows
    count = rows and rows(counting, named.measure)
    assert count is not None, "checked when the configuration was loaded"  # noqa: S101
    return count


def _of_groups(configuration: Configuration, section: ReleaseSection) -> ReleaseKind:
    privacy = configuration.privacy
    source = configuration.sources[section.source]
    unit = privacy.unit
    about = (
        privacy.neighbours,
        unit.rows,
        source.engine.dialect,
        source.zone,
        unit.counted(),
        unit.name,
    )
    one = kind(section, *about)
    if not section.by or spec_of(section).pools_groups:
        return one
    from streamdp.kinds.grouped import Grouped

    own = {
        group: kind(section.with_rows_of(group), *about)
        for group in section.groups
        if ",".join(group) in section.group_rows
    }
    return Grouped(one, section.by, section.groups, privacy.neighbours, own)


def kind(
    section: ReleaseSection,
    neighbours: Neighbours,
    rows: int = 1,
    dialect: Dialect = "duckdb",
    zone: str = "UTC",
    counted: str = "records",
    unit: str = "unit",
) -> ReleaseKind:
    """The kind of one group of records, at the price of one record.

    Args:
        section: The release.
        neighbours: Relation of one record.
        rows: The most records of one unit that count.
        dialect: Of the engine that reads expressions.
        zone: Of the source's batches.
        counted: What a number of records is a number of.
        unit: Name of a unit.
    """
    from streamdp.kinds.spec import BuildContext

    named = section.groups_from
    groups = (len(section.groups) or 1) if named is None else named.most
    public = PublicFiles()
    context = BuildContext(neighbours, rows, groups, dialect, public, zone, counted, unit)
    return spec_of(section).build(section, context)


def spec_of(section: ReleaseSection) -> KindSpec:
    """Specification of the kind of a section that was loaded."""
    spec = find(section.kind)
    if spec is None:
        raise InternalError(f"there is no release kind {section.kind!r}")
    return spec


def charging(unit: Unit) -> UnitCharging:
    """Charging of releases by the configured unit."""
    from streamdp.kinds.charging import UnitCharging

    return UnitCharging(None if unit.column is None else UnitBound(unit.column, unit.rows))


class PublicFiles:
    """Reads public files with the embedded engine."""

    def counts(self, path: str, format: Format | None, query: CellQuery) -> CellCounts:
        """Rows of a file by cell."""
        from streamdp.backends.duckdb.engine import DuckDBBackend

        whole, form = Batch("public", path), format_of(path, format)
        typed = query.expression is not None or form in ("parquet", "arrow")
        types = {} if typed else {query.column: "number"}
        backend = DuckDBBackend(path, form, None, types=types)
        backend.check(query, whole)
        found: CellCounts = backend.answer(query, whole)
        return found

    def numbers(
        self, path: str, format: Format | None, key: str, columns: Sequence[str]
    ) -> Mapping[str, tuple[float, ...]]:
        """Numbers of each key of a table."""
        from streamdp.backends.public import read_public

        return read_public(path, format or file_format(path) or "csv", key, columns)
