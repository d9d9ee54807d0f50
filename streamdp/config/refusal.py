"""How a configuration is refused: what, where in the file, what to do."""

from __future__ import annotations

from typing import NoReturn

from streamdp.config.yaml import Document, Path
from streamdp.errors import ConfigurationError


def refuse(what: str, document: Document, path: Path, hint: str) -> NoReturn:
    """Raise the error of one value.

    Raises:
        ConfigurationError: With the value's place in the file.
    """
    raise ConfigurationError(what, where=document.where(path), hint=hint)
