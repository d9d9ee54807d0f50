"""Secrets: from the environment or from a file; never shown, never written in a configuration.

`${NAME}` in place of the text takes it from the environment, `{file: PATH}` from a file that
another tool keeps. Reprs and errors are without the text.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, SecretStr, WithJsonSchema

from streamdp.disk import read_text
from streamdp.errors import ConfigurationError
from streamdp.sections.document import Document, refuse
from streamdp.sections.document import Path as Place
from streamdp.sections.section import Section
from streamdp.types import Json

MOST_BYTES = 1_000_000
"""Most bytes of the file of a secret."""

_PASSWORD = re.compile(r"passw|://[^/@]*:[^/@]*@", re.IGNORECASE)


class SecretFile(Section):
    """A secret that stands in a file of its own, such as systemd and Kubernetes mount."""

    file: Path = Field(
        description="File that holds the secret alone, relative to the configuration. Line ends"
        " around it are dropped.",
        examples=["/run/secrets/token"],
    )


def _refused_elsewise(value: Json) -> Json:
    if isinstance(value, SecretStr | str | dict | SecretFile) and value:
        return value
    raise ValueError("a secret is ${NAME} of the environment, or {file: PATH}")


def _schema(text: Json) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": [text, SecretFile.model_json_schema()]})


Secret = Annotated[
    SecretFile | SecretStr,
    BeforeValidator(_refused_elsewise),
    _schema({"type": "string", "pattern": r"^\$\{.+\}$"}),
]
"""Text from the environment, or the file that holds it."""

Concealed = Annotated[
    SecretFile | SecretStr,
    BeforeValidator(_refused_elsewise),
    _schema({"type": "string", "minLength": 1}),
]
"""Text that may hold a secret, and is not shown even if it holds none."""


def has_password(connection: SecretFile | SecretStr) -> bool:
    """Whether the text of a connection holds a password, as one of a file may."""
    return isinstance(connection, SecretStr) and bool(
        _PASSWORD.search(connection.get_secret_value())
    )


def refuse_password(connection: SecretFile | SecretStr, document: Document, path: Place) -> None:
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


def concealed(section: Section) -> list[SecretFile | SecretStr]:
    """Secrets of a section."""
    return [value for _, value in section if isinstance(value, SecretFile | SecretStr)]


def reveal(secret: SecretFile | SecretStr) -> str:
    """The text of a secret; for the adapter that needs it, when it is made.

    Raises:
        ConfigurationError: Its file cannot be read, or is empty.
    """
    if isinstance(secret, SecretStr):
        return secret.get_secret_value()
    try:
        text = read_text(secret.file, MOST_BYTES).strip("\r\n")
    except (OSError, UnicodeDecodeError):
        text = ""
    if not text:
        raise ConfigurationError(
            "no secret can be read from this file",
            where=str(secret.file),
            hint="is it there, readable by this user, and not empty?",
        )
    return text
