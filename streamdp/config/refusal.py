"""How a configuration is refused: what, where in the file, what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import NoReturn

from streamdp.config.yaml import Document, Path
from streamdp.errors import ConfigurationError


def refuse(what: str, document: Document, path: Path, hint: str) -> NoReturn:
    """Raise the error of one value.

    Raises:
        ConfigurationError: With the value's place in the file.
    """
    raise ConfigurationError(what, where=document.where(path), hint=hint)


def require_known(name: str, table: Iterable[str], document: Document, path: Path) -> None:
    """Refuse a name that is not in a table.

    Raises:
        ConfigurationError: With the nearest name.
    """
    names = list(table)
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(names) or 'none'}"
        refuse("this name is not configured", document, path, hint)
