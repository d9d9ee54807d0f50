"""Names typed by a person: an unknown one is refused with the nearest known one."""

from __future__ import annotations

from collections.abc import Iterable

from streamdp.errors import ConfigurationError
from streamdp.text import known_names


def require_name(name: str, table: Iterable[str], what: str) -> None:
    """Refuse a name that is not in a section of the configuration.

    Raises:
        ConfigurationError: With the nearest name.
    """
    names = list(table)
    if name not in names:
        raise ConfigurationError(
            f"there is no {what} {name!r}",
            where=f"{what}s",
            hint=known_names(name, names),
        )
