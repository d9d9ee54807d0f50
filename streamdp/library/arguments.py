"""Arguments of a release: the keys of its section in a configuration, checked by the same code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path as FilePath
from typing import Any

import numpy as np

from streamdp.config import Configuration
from streamdp.config.loader import validated
from streamdp.errors import ConfigurationError
from streamdp.privacy.section import Privacy
from streamdp.sections.document import Document, Path
from streamdp.types import Json

NAME, SOURCE = "release", "data"
"""Names of the one release and the one source."""

NOWHERE = "/dev/null"
"""Folder of paths that are no files: a release from memory reads and writes none."""

_BELONGS = ("source", "schedule", "gate", "sinks")
"""Common keys of a section that say when the daemon releases, of what, and where to."""


@dataclass(frozen=True, slots=True)
class Arguments(Document):
    """A configuration that was made of arguments: errors name these, not lines of a file."""

    def where(self, path: Path) -> str:
        """The argument that a value is in: `release(prior.learner)`."""
        inside = path[2:] if path[:1] == ("releases",) else path
        return f"release({'.'.join(map(str, inside))})"


def configured(options: Mapping[str, Any], privacy: Privacy) -> Configuration:
    """A configuration with the one release that the options are the section of.

    Args:
        options: Keys and values as they would stand in YAML; tuples are lists.
        privacy: Unit and relation.

    Raises:
        ConfigurationError: As `config.load`.
    """
    for name in _BELONGS:
        if name in options:
            raise ConfigurationError(
                "this belongs to a configuration: a release from memory is made at once",
                where=f"release({name})",
                hint="leave it out, or let the daemon make the release",
            )
    section = {"source": SOURCE} | {name: _plain(value) for name, value in options.items()}
    value = {
        "store": {"path": f"{NOWHERE}/store.db"},
        "privacy": privacy,
        "sources": {SOURCE: {"path": f"{NOWHERE}/data.arrow", "batches": "files"}},
        "releases": {NAME: section},
    }
    document = Arguments("release", value, dict.fromkeys(_paths(value), (1, 1)), path=NOWHERE)
    return validated(document, FilePath.cwd() / NAME)


def _plain(value: Any) -> Json:
    """A value as YAML would hold it; a fraction as the text of it."""
    if isinstance(value, np.generic | np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, Fraction | FilePath):
        return str(value)
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


def _paths(value: Any, path: Path = ()) -> Iterator[Path]:
    yield path
    inside: Any = ()
    if isinstance(value, dict):
        inside = value.items()
    elif isinstance(value, list):
        inside = enumerate(value)
    for name, each in inside:
        yield from _paths(each, (*path, name))
