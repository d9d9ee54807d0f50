"""How a configuration is refused: what, where in the file, what to do."""

from __future__ import annotations

from typing import NoReturn

from pydantic import SecretStr

from streamdp.config.secrets import SecretFile, has_password
from streamdp.config.yaml import Document, Path
from streamdp.errors import ConfigurationError


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
            "a password does not stand in the configuration",
            document,
            path,
            "take the connection from the environment, ${NAME}, or from a file, {file: PATH}",
        )
