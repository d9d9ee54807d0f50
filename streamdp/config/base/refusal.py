"""How a configuration is refused: what, where in the file, what to do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from pydantic import SecretStr

from streamdp.config.base.secrets import SecretFile, has_password
from streamdp.config.base.yaml import Document, Path
from streamdp.errors import ConfigurationError
from streamdp.text import known_names


def refuse(what: str, document: Document, path: Path, hint: str) -> NoReturn:
    """Raise the error of one value.

    Raises:
        ConfigurationError: With the value's place in the file.
    """
    raise ConfigurationError(what, where=document.where(path), hint=hint)


def refuse_password(connection: SecretFile | SecretStr, document: Document, path: Path) -> None:
    """Refuse a connection with a password that stands in the file itself.

    Raises:
        ConfigurationError: It does.
    """
    if has_password(connection) and path not in document.interpolated:
        refuse(
            "a password must not be written in the configuration",
            document,
            path,
            "take the connection from the environment, ${NAME}, or from a file, {file: PATH}",
        )


def require_known(name: str, table: Iterable[str], document: Document, path: Path) -> None:
    """Refuse a name that is not in a table.

    Raises:
        ConfigurationError: With the nearest name.
    """
    names = list(table)
    if name not in names:
        refuse("this name is not configured", document, path, known_names(name, names))
