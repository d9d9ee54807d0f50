"""The section `sinks`: where releases go."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr, field_validator

from streamdp.config.base.section import Section
from streamdp.config.base.values import FileMode, PositiveDuration
from streamdp.config.sections.addresses import require_address, require_key
from streamdp.config.sections.secrets import Concealed, Secret, SecretFile
from streamdp.objects.address import parsed


class TableSinkSection(Section):
    """A table in the store."""

    kind: Literal["table"] = Field(description="`table`: a table in the store's SQLite file.")
    table: str = Field(
        pattern=r"^[A-Za-z][A-Za-z0-9_]{0,62}$",
        description="Name of the table. It is created if missing.",
        examples=["published"],
    )

    @field_validator("table")
    @classmethod
    def _not_a_table_of_the_store(cls, value: str) -> str:
        own = (
            "instance batch ledger release learner outbox notice pause migration origin arrival"
            " problem alert release_columns measurement measurement_terms rollup"
        )
        if value.lower() in own.split() or value.lower().startswith(("gate_", "sqlite", "v_")):
            raise ValueError("the store has a table of that name; choose another")
        return value


class JsonLinesSinkSection(Section):
    """A file with one JSON object a line."""

    kind: Literal["jsonl"] = Field(description="`jsonl`: a file with one JSON object a line.")
    path: Path = Field(
        description="File to append to, relative to the configuration. It is created if missing.",
        examples=["releases.jsonl"],
    )
    mode: FileMode = Field(
        default=0o600,
        description="Permissions of the file when it is created, in octal. Default 0600.",
        examples=["0644"],
    )


class FilesSinkSection(Section):
    """A folder with one file a release: `FOLDER/JOB/BATCH.ID.csv` or `.parquet`."""

    kind: Literal["csv", "parquet"] = Field(
        description="`csv` or `parquet`: one file a release, in that format."
    )
    path: Path = Field(
        description="Folder of the files, relative to the configuration. It is created if missing.",
        examples=["published"],
    )
    mode: FileMode = Field(
        default=0o600,
        description="Permissions of each file, in octal. Folders get the matching permission to"
        " enter them. Default 0600.",
        examples=["0644"],
    )


class ObjectsSinkSection(Section):
    """Objects of an S3-compatible storage, one a release: `ADDRESS/JOB/BATCH.ID.csv`."""

    kind: Literal["objects"] = Field(
        description="`objects`: one object a release, in an S3-compatible storage."
    )
    address: str = Field(
        description="`s3://BUCKET/FOLDER` above the objects. Credentials are those of the"
        " environment or the instance.",
        examples=["s3://published/streamdp"],
    )
    form: Literal["csv", "parquet"] = Field(
        default="parquet", description="`csv` or `parquet`: format of the objects. Default parquet."
    )

    @field_validator("address")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        if glob.has_magic(value):
            raise ValueError("an address that is written to has no wildcards")
        return str(parsed(value.rstrip("/")))


class DuckDBSinkSection(Section):
    """A table in a DuckDB database."""

    kind: Literal["duckdb"] = Field(description="`duckdb`: a table in a DuckDB database.")
    path: Path = Field(
        description="Database file, relative to the configuration. It is created if missing.",
        examples=["published.duckdb"],
    )
    table: str = Field(
        pattern=r"^[A-Za-z][A-Za-z0-9_]{0,62}$",
        description="Name of the table. It is created if missing.",
        examples=["published"],
    )


class PostgresSinkSection(Section):
    """A table of a PostgreSQL database."""

    kind: Literal["postgres"] = Field(description="`postgres`: a table in a PostgreSQL database.")
    connection: Concealed = Field(
        description="Connection URL or libpq string. A password must come from the environment or"
        " a file.",
        examples=["postgresql://writer@db/published", {"file": "/run/secrets/connection"}],
    )
    table: str = Field(
        pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62})?$",
        description="Name of the table, with or without its schema. It is created if missing.",
        examples=["public.published"],
    )


class WebhookSinkSection(Section):
    """An address that each release is posted to as JSON, signed."""

    kind: Literal["webhook"] = Field(
        description="`webhook`: each release is posted to a URL as signed JSON."
    )
    url: Concealed = Field(
        description="Address to post to: https, or http on this machine. It may come from the"
        " environment or a file if it holds a secret.",
        examples=["https://example.org/hook", {"file": "/run/secrets/hook"}],
    )
    secret: Secret = Field(
        description="Key of the signature, which the receiver knows too. From the environment or a"
        " file.",
        examples=["${STREAMDP_HOOK_SECRET}", {"file": "/run/secrets/key"}],
    )
    timeout: PositiveDuration = Field(
        default=10,
        description="Longest time for one delivery, as a duration. Default 10s.",
        examples=["10s"],
    )
    attempts: int = Field(
        default=20,
        ge=1,
        le=1000,
        strict=True,
        description="Number of failed tries after which a delivery becomes a dead letter. Default"
        " 20.",
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

    kind: Literal["command"] = Field(
        description="`command`: a program gets each release as JSON on its standard input. No"
        " shell is used."
    )
    argv: tuple[str, ...] = Field(
        min_length=1,
        description="Program and its arguments.",
        examples=[["/usr/local/bin/notify", "--team", "data"]],
    )
    path: Path = Field(
        default=Path("."),
        description="Folder in which the program runs, relative to the configuration. Default: the"
        " configuration's folder.",
        examples=["/srv/hooks"],
    )
    timeout: PositiveDuration = Field(
        default=30,
        description="Longest run of the program, as a duration. Then it and its children are"
        " killed. Default 30s.",
        examples=["30s"],
    )
    attempts: int = Field(
        default=12,
        ge=1,
        le=1000,
        strict=True,
        description="Number of failed tries after which a delivery becomes a dead letter. Default"
        " 12.",
    )
    environment: dict[str, str] = Field(
        default={},
        description="Environment variables of the program, by name. It gets these and PATH alone."
        " Default: none.",
        examples=[{"TEAM": "data"}],
    )

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

    kind: Literal["stdout"] = Field(
        description="`stdout`: standard output, one JSON object a line."
    )


Sink = Annotated[
    TableSinkSection
    | JsonLinesSinkSection
    | FilesSinkSection
    | ObjectsSinkSection
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
    "objects",
    "duckdb",
    "postgres",
    "webhook",
    "command",
    "stdout",
)
"""Values that `kind` may have."""
