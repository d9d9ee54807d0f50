"""Release kinds, by what the configuration names, for any source and unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from streamdp.config.base.formats import file_format
from streamdp.errors import InternalError
from streamdp.kinds.registry import find
from streamdp.types import Batch, CellCounts, CellQuery, Format, Neighbours, ReleaseKind, UnitBound
from streamdp.wiring.sources import format_of

if TYPE_CHECKING:
    from streamdp.config.base.expressions import Dialect
    from streamdp.config.base.releases import ReleaseSection
    from streamdp.config.model import Configuration
    from streamdp.config.sections.units import Unit
    from streamdp.kinds.charging import UnitCharging
    from streamdp.kinds.spec import KindSpec


def release_kind(configuration: Configuration, name: str) -> ReleaseKind:
    """The kind of a configured release: of a batch, or of each public group of it."""
    section, privacy = configuration.releases[name], configuration.privacy
    dialect = configuration.sources[section.source].engine.kind
    one = kind(section, privacy.neighbours, privacy.unit.rows, dialect)
    if not section.by or spec_of(section).pools_groups:
        return one
    from streamdp.kinds.grouped import Grouped

    own = {
        group: kind(section.with_rows_of(group), privacy.neighbours, privacy.unit.rows, dialect)
        for group in section.groups
        if ",".join(group) in section.group_rows
    }
    return Grouped(one, section.by, section.groups, privacy.neighbours, own)


def kind(
    section: ReleaseSection, neighbours: Neighbours, rows: int = 1, dialect: Dialect = "duckdb"
) -> ReleaseKind:
    """The kind of one group of records, at the price of one record.

    Args:
        section: The release.
        neighbours: Relation of one record.
        rows: The most records of one unit that count.
        dialect: Of the engine that reads expressions.
    """
    from streamdp.kinds.spec import BuildContext

    groups = len(section.groups) or 1
    context = BuildContext(neighbours, rows, groups, dialect, PublicFiles())
    return spec_of(section).build(section, context)


def spec_of(section: ReleaseSection) -> KindSpec:
    """What the registry knows of the kind of a section that was loaded."""
    spec = find(section.kind)
    if spec is None:
        raise InternalError(f"there is no release kind {section.kind!r}")
    return spec


def charging(unit: Unit) -> UnitCharging:
    """What releases cost a unit."""
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
