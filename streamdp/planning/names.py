"""Names that a person types: one that is not there is refused, with the nearest."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from streamdp.errors import ConfigurationError


def require_name(name: str, table: Iterable[str], what: str) -> None:
    """Refuse a name that is not in a section of the configuration.

    Raises:
        ConfigurationError: With the nearest name.
    """
    names = list(table)
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1)
        raise ConfigurationError(
            f"there is no {what} {name!r} in the configuration",
            where=f"{what}s",
            hint=f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(names)}",
        )
