"""Check the files that sinks and the log write to, and the places of the sinks' secrets."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator, Mapping

from pydantic import SecretStr

from streamdp.config.model import Configuration
from streamdp.sections.document import Document, Path, refuse
from streamdp.sections.secrets import refuse_password
from streamdp.sinks.section import Written
from streamdp.sources.section import SourceSection

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
    for at, written in _written(configuration):
        key = (*at, written.key)
        for name, source in configuration.sources.items():
            if _is_read(source, written.example) and not _is_other_table(source, written.table):
                refuse(f"source {name!r} reads this file", document, key, "take another path")
        holder = ".".join(map(str, at)) if written.table is None else SHARED
        if _is_put_aside(written.place, taken):
            refuse("a file that is put aside gets this name", document, key, "take another path")
        held = taken.get(written.place)
        if held is not None and not holder == held == SHARED:
            refuse(f"this file is that of {held}", document, key, "take another path")
        taken[written.place] = holder
    for name, sink in configuration.sinks.items():
        for secret in sink.secrets:
            at = ("sinks", name, secret)
            _require_kept_apart(getattr(sink, secret), document, at)
        for connection in sink.connections:
            at = ("sinks", name, connection)
            refuse_password(getattr(sink, connection), document, at)
    if configuration.web is not None:
        _require_kept_apart(configuration.web.token, document, ("web", "token"))


def _is_put_aside(file: str, taken: Mapping[str, str]) -> bool:
    """Whether a path is that of a rotated log, or of a copy of the store."""
    logs = (f"{name}." for name, holder in taken.items() if holder == "log")
    stores = (name for name, holder in taken.items() if holder == "the store")
    rotated = any(file.startswith(log) and file.removeprefix(log).isdigit() for log in logs)
    return rotated or any(file.startswith(f"{name}.{kind}-") for name in stores for kind in COPIES)


def _is_read(source: SourceSection, written: str) -> bool:
    return bool(source.path) and fnmatch.fnmatch(written, source.place())


def _is_other_table(source: SourceSection, written: str | None) -> bool:
    """Whether a sink writes another table of the database that a source reads."""
    read = source.table_name()
    if written is None or read is None:
        return False
    return read.lower().split(".")[-1] != written.lower()


def _written(configuration: Configuration) -> Iterator[tuple[Path, Written]]:
    """The places that are written to, and where in the file they are named."""
    if configuration.log.path is not None:
        path = os.path.realpath(configuration.log.path)
        yield ("log",), Written("path", path, path)
    for name, sink in configuration.sinks.items():
        written = sink.written()
        if written is not None:
            yield ("sinks", name), written
    for name, report in configuration.reports.items():
        path = os.path.realpath(report.path)
        for form in report.form:
            example = f"{path}/{report.job}-1970-01-01.{form}"
            yield ("reports", name), Written("path", example, example)


def _require_kept_apart(secret: object, document: Document, path: Path) -> None:
    if isinstance(secret, SecretStr) and path not in document.interpolated:
        refuse(
            "a secret must not be written in the configuration",
            document,
            path,
            "take it from the environment, ${NAME}, or from a file, {file: PATH}",
        )
