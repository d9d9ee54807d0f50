"""Who is simulated: a configured release with another learner, epsilon or stream."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from streamdp import wiring
from streamdp.cli.jobs import require_name
from streamdp.config.formats import file_format
from streamdp.config.priors import Guess
from streamdp.config.releases import Release
from streamdp.errors import ConfigurationError
from streamdp.simulation.permission import require_no_production_table
from streamdp.simulation.study import ORACLE, Study
from streamdp.simulation.synthetic import GUESS, RESOLUTION, expected_rows, synthetic
from streamdp.simulation.table import table_stream
from streamdp.types import Batch
from streamdp.wiring.quantiles import ONE_RECORD
from streamdp.wiring.sources import backend

if TYPE_CHECKING:
    from streamdp.config import Configuration
    from streamdp.config.sources import Source
    from streamdp.config.units import Unit
    from streamdp.mechanisms.sharpness import Relation
    from streamdp.releases.quantiles import Quantiles
    from streamdp.simulation.stream import Stream

LEARNERS = ("experts", "online-gradient", "last-release", "none")


@dataclass(frozen=True, slots=True)
class Contenders:
    """The release kinds of a study, made of one configured release.

    Args:
        section: The release.
        neighbours: Of the configuration.
        rows: What the oracle takes for expected rows if the release has none.
        unit: Of the configuration.
    """

    section: Release
    neighbours: Relation
    rows: int
    unit: Unit = ONE_RECORD

    def kind(self, learner: str, epsilon: Fraction, stream: Stream) -> Quantiles:
        """As production would make it, with the features a synthetic stream brings.

        Without `expected_rows` beyond the learner's: they only make the statement of accuracy,
        which takes as long as a hundred releases.

        Raises:
            ConfigurationError: The release does not admit this learner or epsilon.
        """
        section = self._with(learner, epsilon)
        made = replace(wiring.kind(section, self.neighbours, self.unit), expected_rows=None)
        feature = stream.feature()
        if feature is None:
            return made
        return replace(made, features=feature, feature_names=("of the stream",))

    def _with(self, learner: str, epsilon: Fraction) -> Release:
        if learner != ORACLE:
            return _changed(self.section, {"epsilon": epsilon}, {"learner": learner})
        rows = self.section.expected_rows or self.rows
        known = {"epsilon": epsilon, "expected_rows": rows, "mechanism": "auto"}
        return _changed(self.section, known, {"learner": "experts"})


def require_permission(configuration: Configuration, section: Release, table: str | None) -> None:
    """Refuse a table that a source of the configuration reads.

    Raises:
        ConfigurationError: Names the source.
    """
    paths = {name: each.path for name, each in configuration.sources.items() if each.path}
    require_no_production_table(
        _read_from(configuration.sources[section.source], table).path, paths
    )


def on_table(
    configuration: Configuration, section: Release, table: str | None, length: int | None
) -> Study:
    """The release on a table, cut into batches as its source is.

    Raises:
        SourceError: The table cannot be read or holds no batches.
    """
    source = _read_from(configuration.sources[section.source], table)
    batches = wiring.source(section.source, source).batches(int(time.time()))
    privacy = configuration.privacy
    kind = wiring.kind(section, privacy.neighbours, privacy.unit)
    query = kind.query(Batch(section.source, "simulated"))
    stream = table_stream(section.source, batches, backend(source), query, length)
    rows = round(sum(int(each.counts.sum()) for each in stream.counts) / len(stream.counts))
    contenders = Contenders(section, privacy.neighbours, max(1, rows), privacy.unit)
    return Study(partial(_same, stream), contenders.kind)


def on_synthetic(
    configuration: Configuration, section: Release, stream: str, length: int | None
) -> Study:
    """The release, as `in_unit_of` the stream, on a synthetic one."""
    contenders = Contenders(section, configuration.privacy.neighbours, expected_rows(stream))
    return Study(partial(synthetic, stream, section.quantiles, length=length), contenders.kind)


def admitted(section: Release, asked: list[str]) -> list[str]:
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


def in_unit_of(section: Release, stream: str) -> Release:
    """The release on its own for a synthetic stream: its guess, cells and rows, and no bounds."""
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


def _changed(section: Release, release: dict[str, Any], prior: dict[str, Any]) -> Release:
    """Another release, checked as one that was read from a file."""
    changed = section.model_copy(
        update={**release, "prior": section.prior.model_copy(update=prior)}
    )
    try:
        Release.model_validate(changed.model_dump(exclude={"schedule"}))
    except ValidationError as error:
        text = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise ConfigurationError(text, where="simulate") from None
    return changed


def _admits(section: Release, learner: str) -> bool:
    try:
        _changed(section, {}, {"learner": learner})
    except ConfigurationError:
        return False
    return True


def _read_from(source: Source, table: str | None) -> Source:
    if table is None:
        return source
    path = os.path.abspath(os.path.expanduser(table))
    return source.model_copy(update={"path": path, "format": file_format(path) or source.format})


def _same(stream: Stream, seed: int) -> Stream:
    """A table is the same for every seed; chance alone differs."""
    return stream
