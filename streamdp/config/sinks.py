"""The section `sinks`: where releases go."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr, field_validator

from streamdp.config.addresses import require_address, require_key
from streamdp.config.secrets import Concealed, Secret, SecretFile
from streamdp.config.section import Section
from streamdp.config.values import FileMode, PositiveDuration


class TableSinkSection(Section):
    """A table in the store."""

    kind: Literal["table"]
    table: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,62}$")

    @field_validator("table")
    @classmethod
    def _not_a_table_of_the_store(cls, value: str) -> str:
        own = (
            "instance batch ledger release learner outbox notice pause migration origin arrival"
            " problem alert release_columns"
        )
        if value.lower() in own.split() or value.lower().startswith(("gate_", "sqlite", "v_")):
            raise ValueError("the store has a table of that name; choose another")
        return value


class JsonLinesSinkSection(Section):
    """A file with one JSON object a line."""

    kind: Literal["jsonl"]
    path: Path = Field(description="The file; made if it is not there.")
    mode: FileMode = Field(default=0o600, description="Permissions of the file if it is made.")


class FilesSinkSection(Section):
    """A folder with one file a release: `FOLDER/JOB/BATCH.ID.csv` or `.parquet`."""

    kind: Literal["csv", "parquet"]
    path: Path = Field(description="The folder; made if it is not there.")
    mode: FileMode = Field(
        default=0o600, description="Permissions of each file; folders get those to enter them."
    )


class DuckDBSinkSection(Section):
    """A table in a DuckDB database."""

    kind: Literal["duckdb"]
    path: Path = Field(description="The database; made if it is not there.")
    table: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,62}$")


class PostgresSinkSection(Section):
    """A table of a PostgreSQL database."""

    kind: Literal["postgres"]
    connection: Concealed = Field(description="URL or words of libpq.")
    table: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62})?$")


class WebhookSinkSection(Section):
    """An address that each release is posted to as JSON, signed."""

    kind: Literal["webhook"]
    url: Concealed = Field(description="https, or http to this machine; often a secret itself.")
    secret: Secret = Field(description="Key of the signature, known to the receiver too.")
    timeout: PositiveDuration = Field(default=10, description="For one whole exchange.")
    attempts: int = Field(
        default=20, ge=1, le=1000, strict=True, description="Tries before it is a dead letter."
    )

    @field_validator("url")
    @classmethod
    def _is_an_address(cls, value: SecretFile | SecretStr) -> SecretFile | SecretStr:
        if isinstance(value, SecretStr):
            require_address(value.get_secret_value())
        return value

    @field_validator("secret")
    @classmethod
    def _is_a_key(cls, value: SecretFile | SecretStr) -> SecretFile | SecretStr:
        if isinstance(value, SecretStr):
            require_key(value.get_secret_value())
        return value


class CommandSinkSection(Section):
    """A program that gets each release as JSON on its standard input; there is no shell."""

    kind: Literal["command"]
    argv: tuple[str, ...] = Field(min_length=1, description="Program and arguments.")
    path: Path = Field(default=Path("."), description="The folder it runs in.")
    timeout: PositiveDuration = Field(
        default=30, description="Then it is killed, with its children."
    )
    attempts: int = Field(
        default=12, ge=1, le=1000, strict=True, description="Tries before it is a dead letter."
    )
    environment: dict[str, str] = Field(default={}, description="All it gets, beside PATH.")

    @field_validator("argv")
    @classmethod
    def _names_a_program(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value[0] or any("\0" in word for word in value):
            raise ValueError("the first word names a program, and no word holds a zero byte")
        return value

    @field_validator("environment")
    @classmethod
    def _has_names(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            if not name or "=" in name or "\0" in name + text:
                raise ValueError(f"{name!r} cannot be a variable of the environment")
        return value


class StandardOutputSinkSection(Section):
    """Standard output, one JSON object a line."""

    kind: Literal["stdout"]


Sink = Annotated[
    TableSinkSection
    | JsonLinesSinkSection
    | FilesSinkSection
    | DuckDBSinkSection
    | PostgresSinkSection
    | WebhookSinkSection
    | CommandSinkSection
    | StandardOutputSinkSection,
    Field(discriminator="kind"),
]

SINK_KINDS = (
    "table",
    "jsonl",
    "csv",
    "parquet",
    "duckdb",
    "postgres",
    "webhook",
    "command",
    "stdout",
)
"""What `kind` may say."""
