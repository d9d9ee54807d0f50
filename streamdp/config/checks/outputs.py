"""Check the files that sinks and the log write to, and the places of the sinks' secrets."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Mapping

from pydantic import SecretStr

from streamdp.config.base.yaml import Document, Path
from streamdp.config.model import Configuration
from streamdp.config.refusal import refuse, refuse_password
from streamdp.config.sections.sinks import (
    DuckDBSinkSection,
    FilesSinkSection,
    JsonLinesSinkSection,
    ObjectsSinkSection,
    PostgresSinkSection,
    Sink,
    WebhookSinkSection,
)
from streamdp.config.sections.sources import Source

COMPANIONS = ("", "-wal", "-shm", "-journal", ".lock", ".turn", ".pulse")
"""Endings of the names of the store's files."""

COPIES = ("schema", "restored", "replaced")
"""Kinds of copies of the store that are put beside it, each with its time."""

SHARED = "another sink's database"
"""A database may hold the tables of several sinks."""


def check_outputs(configuration: Configuration, document: Document) -> None:
    """Refuse sinks that write to the store, the log, another sink's file or a source.

    Raises:
        ConfigurationError: One does, or a secret stands in the file.
    """
    store = os.path.realpath(configuration.store.path)
    anchor = os.path.realpath(configuration.store.anchor or f"{store}.anchor")
    if anchor == store:
        refuse("this file is the store", document, ("store", "anchor"), "take another path")
    taken = {
        **{f"{store}{suffix}": "the store" for suffix in COMPANIONS},
        anchor: "its anchor",
        os.path.realpath(document.path or document.name): "the configuration",
    }
    for place, file, written in _written(configuration):
        for name, source in configuration.sources.items():
            if _is_read(source, written) and not _is_other_table(
                source, _sink_at(configuration, place)
            ):
                refuse(f"source {name!r} reads this file", document, place, "take another path")
        shared = isinstance(_sink_at(configuration, place), DuckDBSinkSection)
        holder = SHARED if shared else ".".join(map(str, place[:-1]))
        if _is_put_aside(file, taken):
            refuse("a file that is put aside gets this name", document, place, "take another path")
        if file in taken and not holder == taken[file] == SHARED:
            refuse(f"this file is that of {taken[file]}", document, place, "take another path")
        taken[file] = holder
    for name, sink in configuration.sinks.items():
        if isinstance(sink, WebhookSinkSection):
            _require_kept_apart(sink.secret, document, ("sinks", name, "secret"))
        elif isinstance(sink, PostgresSinkSection):
            refuse_password(sink.connection, document, ("sinks", name, "connection"))
    if configuration.web is not None:
        _require_kept_apart(configuration.web.token, document, ("web", "token"))


def _is_put_aside(file: str, taken: Mapping[str, str]) -> bool:
    """Whether a path is that of a rotated log, or of a copy of the store."""
    logs = (f"{name}." for name, holder in taken.items() if holder == "log")
    stores = (name for name, holder in taken.items() if holder == "the store")
    rotated = any(file.startswith(log) and file.removeprefix(log).isdigit() for log in logs)
    return rotated or any(file.startswith(f"{name}.{kind}-") for name in stores for kind in COPIES)


def _sink_at(configuration: Configuration, place: Path) -> Sink | None:
    return configuration.sinks.get(str(place[1])) if place[0] == "sinks" else None


def _is_read(source: Source, written: str) -> bool:
    return bool(source.path) and fnmatch.fnmatch(written, source.place())


def _is_other_table(source: Source, sink: Sink | None) -> bool:
    """Whether a sink writes another table of the database that a source reads."""
    table = source.table_name()
    if not isinstance(sink, DuckDBSinkSection) or table is None:
        return False
    return table.lower().split(".")[-1] != sink.table.lower()


def _written(configuration: Configuration) -> list[tuple[Path, str, str]]:
    """Places in the file, the paths there, and the name of a file that is written."""
    found: list[tuple[Path, str, str]] = []
    if configuration.log.path is not None:
        path = os.path.realpath(configuration.log.path)
        found.append((("log", "path"), path, path))
    for name, sink in configuration.sinks.items():
        if isinstance(sink, JsonLinesSinkSection | FilesSinkSection | DuckDBSinkSection):
            path = os.path.realpath(sink.path)
            folder = isinstance(sink, FilesSinkSection)
            written = f"{path}/job/batch.{sink.kind}" if folder else path
            found.append((("sinks", name, "path"), path, written))
        if isinstance(sink, ObjectsSinkSection):
            written = f"{sink.address}/job/batch.{sink.form}"
            found.append((("sinks", name, "address"), f"{sink.address}.{sink.form}", written))
    for name, report in configuration.reports.items():
        path = os.path.realpath(report.path)
        for form in report.form:
            written = f"{path}/{report.job}-1970-01-01.{form}"
            found.append((("reports", name, "path"), written, written))
    return found


def _require_kept_apart(secret: object, document: Document, path: Path) -> None:
    if isinstance(secret, SecretStr) and path not in document.interpolated:
        refuse(
            "a secret must not be written in the configuration",
            document,
            path,
            "take it from the environment, ${NAME}, or from a file, {file: PATH}",
        )
