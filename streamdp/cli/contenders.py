"""Who is simulated: a configured release with another learner, epsilon or stream."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError

from streamdp import wiring
from streamdp.cli.jobs import require_name
from streamdp.config.engines import DuckDBEngine
from streamdp.config.formats import file_format
from streamdp.errors import ConfigurationError
from streamdp.kinds.quantiles.build import question as question_of
from streamdp.kinds.quantiles.kind import Quantiles
from streamdp.kinds.quantiles.prior_section import Guess
from streamdp.kinds.quantiles.section import QuantilesSection
from streamdp.simulation.permission import refuse_production, require_no_production_table
from streamdp.simulation.study import ORACLE, Study
from streamdp.simulation.synthetic import GUESS, RESOLUTION, expected_rows, synthetic
from streamdp.simulation.table import table_stream
from streamdp.wiring.sources import backend

if TYPE_CHECKING:
    from streamdp.config import Configuration
    from streamdp.config.sources import Source
    from streamdp.config.units import Unit
    from streamdp.mechanisms.sharpness import Relation
    from streamdp.simulation.stream import Stream
    from streamdp.types import Batch, Query

LEARNERS = ("experts", "online-gradient", "last-release", "none")


@dataclass(frozen=True, slots=True)
class Contenders:
    """The release kinds of a study, made of one configured release.

    Args:
        section: The release.
        neighbours: Of the configuration.
        unit: Of the configuration.
        rows: What the oracle takes for expected rows if the release has none.
    """

    section: QuantilesSection
    neighbours: Relation
    unit: Unit
    rows: int

    def kind(self, learner: str, epsilon: Fraction, stream: Stream) -> Quantiles:
        """As production would make it, with the features a synthetic stream brings.

        Without `expected_rows` beyond the learner's: they only make the statement of accuracy,
        which takes as long as a hundred releases.

        Raises:
            ConfigurationError: The release does not admit this learner or epsilon.
        """
        section = self._with(learner, epsilon)
        made = cast(Quantiles, wiring.kind(section, self.neighbours, self.unit.rows))
        made = replace(made, expected_rows=None)
        feature = stream.feature()
        if feature is None:
            return made
        return replace(made, features=feature, feature_names=("of the stream",))

    def _with(self, learner: str, epsilon: Fraction) -> QuantilesSection:
        if learner != ORACLE:
            return _changed(self.section, {"epsilon": epsilon}, {"learner": learner})
        rows = self.section.expected_rows or self.rows
        known = {"epsilon": epsilon, "expected_rows": rows, "mechanism": "auto"}
        return _changed(self.section, known, {"learner": "experts"})


def require_quantiles(configuration: Configuration, name: str) -> QuantilesSection:
    """The section of a release that can be simulated.

    Raises:
        ConfigurationError: It is of another kind.
    """
    section = configuration.releases[name]
    if not isinstance(section, QuantilesSection):
        raise ConfigurationError(
            f"releases of kind {section.kind} cannot be simulated", where=f"releases.{name}"
        )
    return section


def require_permission(
    configuration: Configuration, section: QuantilesSection, table: str | None
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


def study(configuration: Configuration, section: QuantilesSection, scene: Scene) -> Study:
    """What is replayed: a release that is `on_stream`, there.

    Of a release by groups it is one group: each has a learner of its own.

    Raises:
        SourceError: The table cannot be read or holds no batches.
        ConfigurationError: The release has no such group.
    """
    neighbours, unit = configuration.privacy.neighbours, configuration.privacy.unit
    if scene.stream != "table":
        made = partial(synthetic, scene.stream, section.quantiles, length=scene.length)
        return Study(made, Contenders(section, neighbours, unit, expected_rows(scene.stream)).kind)
    source = _read_from(configuration, section, scene.table)
    batches = wiring.source(section.source, source).batches(int(time.time()))
    group = _group(section, scene.group)
    question, charging = question_of(section, source.engine.kind), wiring.charging(unit)
    if section.by:
        question = replace(question, by=section.by, groups=section.groups)

    def asked(batch: Batch) -> Query:
        return charging.bounded(question, batch)

    read = table_stream(section.source, batches, backend(source), asked, group, scene.length)
    rows = round(sum(int(each.counts.sum()) for each in read.counts) / len(read.counts))
    return Study(partial(_same, read), Contenders(section, neighbours, unit, max(1, rows)).kind)


def _group(section: QuantilesSection, name: str | None) -> int:
    """Place of a group among those of the release; 0 where there are none."""
    names = [",".join(group) for group in section.groups]
    if name is None and len(names) < 2:
        return 0
    require_name(name or "", names, "group")
    return names.index(name or "")


def admitted(section: QuantilesSection, asked: list[str]) -> list[str]:
    """The learners that were asked for; of all, those that the release admits.

    Raises:
        ConfigurationError: One that was asked for is unknown or not admitted.
    """
    if asked:
        for name in asked:
            require_name(name, LEARNERS, "learner")
            _changed(section, {}, {"learner": name})
        return list(dict.fromkeys(asked))
    return [name for name in LEARNERS if _admits(section, name)]


def on_stream(section: QuantilesSection, stream: str) -> QuantilesSection:
    """The release in the unit of a synthetic stream: its guess, cells and rows, and no bounds."""
    if stream == "table":
        return section
    location, scale = GUESS
    own = {
        "guess": Guess(location=location, scale=scale),
        "bounds": None,
        "resolution": RESOLUTION,
        "expected_rows": expected_rows(stream),
    }
    of_the_column = dict.fromkeys(("robust", "public", "table"))
    prior = section.prior.model_copy(update=of_the_column)
    return section.model_copy(update={**own, "prior": prior})


def _changed(
    section: QuantilesSection, release: dict[str, Any], prior: dict[str, Any]
) -> QuantilesSection:
    """Another release, checked as one that was read from a file."""
    changed = section.model_copy(
        update={**release, "prior": section.prior.model_copy(update=prior)}
    )
    try:
        QuantilesSection.model_validate(changed.model_dump(exclude={"schedule"}))
    except ValidationError as error:
        text = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise ConfigurationError(text, where="simulate") from None
    return changed


def _admits(section: QuantilesSection, learner: str) -> bool:
    try:
        _changed(section, {}, {"learner": learner})
    except ConfigurationError:
        return False
    return True


def _read_from(
    configuration: Configuration, section: QuantilesSection, table: str | None
) -> Source:
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
        from streamdp.config.sources import Windows

        unit = configuration.privacy.unit.column
        types = dict.fromkeys((*section.by, *([unit] if unit else [])), "text")
        if isinstance(source.batches, Windows):
            types[source.batches.column] = "timestamp"
        if isinstance(section.column, str):
            types[section.column] = "number"
        changed["types"] = {**types, **source.types}
    tables = {} if format is None else {"table": None, "query": None}
    return source.model_copy(update=changed | tables)


def _same(stream: Stream, seed: int) -> Stream:
    """A table is the same for every seed; chance alone differs."""
    return stream
