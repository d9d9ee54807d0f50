"""Load a configuration: read, interpolate, validate, resolve paths, check what hangs together."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from streamdp.config.check import check
from streamdp.config.model import Configuration
from streamdp.config.wording import advice, wording
from streamdp.disk import read_text
from streamdp.errors import ConfigurationError
from streamdp.files import DEMO
from streamdp.objects import is_address
from streamdp.sections.document import Document, parse
from streamdp.sections.document import Path as Place
from streamdp.text import is_text
from streamdp.types import Json

Absolute = Callable[[Path, str], str]
"""Makes a path absolute, from a file beside it."""

MOST_BYTES = 4_000_000
"""Most bytes of a configuration."""


def load(path: Path, environment: Mapping[str, str] = os.environ) -> Configuration:
    """Load and check a configuration; nothing else is touched.

    Raises:
        ConfigurationError: Says every problem with file, line, column, key and what to do.
    """
    try:
        text = read_text(path, MOST_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            "the configuration cannot be read",
            where=str(path),
            hint="name it with --config, or make one with `streamdp init`"
            if isinstance(error, FileNotFoundError)
            else f"it must be readable UTF-8 text in a regular file, of {MOST_BYTES} bytes at most",
        ) from None
    parsed = replace(parse(text, path.name), path=str(path))
    return validated(interpolate(parsed, environment), path.absolute())


def validated(document: Document, beside: Path) -> Configuration:
    """Check a whole configuration that was read.

    Args:
        document: Its values.
        beside: A file in the folder that relative paths start from.

    Raises:
        ConfigurationError: As `load`.
    """
    _require_names(document)
    try:
        configuration = Configuration.model_validate(_resolved(document.value, beside))
    except ValidationError as error:
        raise _readable(error, document) from None
    check(configuration, document)
    return configuration


def _require_names(document: Document) -> None:
    """Refuse the keys of an entry where its name is missing.

    Raises:
        ConfigurationError: A section of named entries holds a value that is no entry.
    """
    for section in ("sources", "releases", "sinks", "reports", "gates"):
        entries = document.value.get(section) if isinstance(document.value, dict) else None
        if not isinstance(entries, dict):
            continue
        plain = [key for key, value in entries.items() if isinstance(value, str | int | float)]
        if plain:
            raise ConfigurationError(
                f"{section} have names, and their keys below: {plain[0]!r} is a key of one",
                where=document.where((section, plain[0])),
                hint=f"put a name above these keys: {section}: {{a_name: {{{plain[0]}: …}}}}",
            )


def _beside(path: Path, named: str) -> str:
    """A path, relative to the folder of the configuration.

    Raises:
        ConfigurationError: It is an address of objects, and no file.
    """
    if is_address(named):
        raise ConfigurationError(
            "this is kept in a file of this machine",
            where=f"{path.name}: {named.partition('://')[0]}://",
            hint="sources, copies of the store and sinks of kind objects have addresses",
        )
    return os.path.normpath(path.parent / os.path.expanduser(named))


def _address_or_beside(path: Path, named: str) -> str:
    """An absolute path, or the address of a storage as it was written."""
    return named if is_address(named) else _beside(path, named)


def _resolved(value: Any, path: Path) -> Any:
    """Paths made absolute; what is no mapping is left for the model to refuse."""
    if not isinstance(value, dict):
        return value
    found = dict(value)
    for section in ("store", "log", "web", "backup"):
        absolute = _address_or_beside if section == "backup" else _beside
        found[section] = _with_path(found[section], path, absolute) if section in found else None
        if found[section] is None:
            del found[section]
    if isinstance(found.get("sources"), dict):
        entries = found["sources"].items()
        found["sources"] = {
            name: _with_path(entry, path, _address_or_beside) for name, entry in entries
        }
    for section in ("sinks", "reports"):
        if isinstance(found.get(section), dict):
            entries = found[section].items()
            found[section] = {name: _with_path(entry, path) for name, entry in entries}
    if isinstance(found.get("releases"), dict):
        entries = found["releases"].items()
        found["releases"] = {name: _with_paths_within(entry, path) for name, entry in entries}
    return found


def _with_paths_within(entry: Any, path: Path) -> Any:
    """A release, with the paths of public files that it names at whatever depth."""
    if not isinstance(entry, dict):
        return entry
    return {
        key: _with_path(_with_paths_within(value, path), path) if isinstance(value, dict) else value
        for key, value in entry.items()
    }


def _with_path(entry: Any, path: Path, absolute: Absolute = _beside) -> Any:
    """An entry with its path absolute, and those of its secrets and markers."""
    if isinstance(entry, dict):
        folder = {"path": "."} if entry.get("kind") == "command" else {}
        entry = folder | {key: _with_file(value, path, absolute) for key, value in entry.items()}
    if not isinstance(entry, dict) or not isinstance(entry.get("path"), str) or not entry["path"]:
        return entry
    named: str = entry["path"]
    if named.startswith(DEMO):
        from importlib.resources import files

        resolved = str(files("streamdp").joinpath("demo", named.removeprefix(DEMO)))
    else:
        resolved = absolute(path, named)
    found = {**entry, "path": resolved}
    if isinstance(entry.get("anchor"), str) and entry["anchor"]:
        found["anchor"] = _beside(path, entry["anchor"])
    return found


def _with_file(value: Any, path: Path, absolute: Absolute) -> Any:
    """A mapping within an entry, with the path of its secret or marker absolute."""
    if not isinstance(value, dict):
        return value
    named = {key: value[key] for key in ("file", "marker") if isinstance(value.get(key), str)}
    return value | {key: absolute(path, name) for key, name in named.items()}


def _readable(error: ValidationError, document: Document) -> ConfigurationError:
    """One error in the words of the file, from pydantic's list."""
    problems = []
    found = error.errors(include_url=False)
    for problem in found:
        if _is_other_form(problem, found):
            continue
        place = tuple(part for part in problem["loc"] if not _is_tag(part, document))
        empty = problem["input"] is None and problem["type"].endswith("_type")
        kind = "empty" if empty else problem["type"]
        hint = advice(kind, _schema(), document.value, place)
        problems.append((document.where(place), wording(problem | {"type": kind}), hint))
    problems = list(dict.fromkeys(problems))
    if len(problems) == 1:
        where, text, hint = problems[0]
        return ConfigurationError(text, where=where, hint=hint)
    lines = [f"{where}: {text}" + (f" ({hint})" if hint else "") for where, text, hint in problems]
    return ConfigurationError("\n".join([f"{len(problems)} problems", *lines]))


def _is_other_form(problem: Any, found: list[Any]) -> bool:
    """Whether a value could also have been a word, but was meant as the mapping that has errors."""
    place = problem["loc"][:-1]
    deeper = (other["loc"] for other in found if len(other["loc"]) > len(problem["loc"]))
    word = problem["type"] in ("literal_error", "string_type")
    return word and any(loc[: len(place)] == place for loc in deeper)


def _is_tag(part: str | int, document: Document) -> bool:
    """Whether a part of a place is pydantic's name of a union's member, which is in no file."""
    return (
        isinstance(part, str)
        and ("[" in part or part in _tags())
        and not any(part in path for path in document.marks)
    )


@functools.cache
def _tags() -> frozenset[str]:
    """Members of unions, which are classes of sections."""
    named = (name.rsplit("__", 1)[-1] for name in _schema()["$defs"])
    return frozenset({*named, "constrained-str"})


@functools.cache
def _schema() -> Any:
    return Configuration.model_json_schema()


_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


def interpolate(document: Document, environment: Mapping[str, str]) -> Document:
    """The document with every reference replaced; values stay text.

    Raises:
        ConfigurationError: A variable is not set and has no default. Its value is never shown.
    """
    interpolated: set[Place] = set()

    def walk(value: Json, path: Place) -> Json:
        if isinstance(value, dict):
            return {key: walk(child, (*path, key)) for key, child in value.items()}
        if isinstance(value, list):
            return [walk(child, (*path, index)) for index, child in enumerate(value)]
        return _REFERENCE.sub(lambda m: look_up(m, path), value) if _is_text(value) else value

    def look_up(match: re.Match[str], path: Place) -> str:
        name, default = match[1], match[2]
        if name in environment:
            interpolated.add(path)
        found = environment.get(name, default)
        if found is None:
            raise ConfigurationError(
                f"the environment has no {name}",
                where=document.where(path),
                hint=f"export {name}, or write ${{{name}:-default}}",
            )
        if not is_text(found):
            raise ConfigurationError(
                f"the environment has a {name} that is no UTF-8 text", where=document.where(path)
            )
        return str(found)

    value = walk(document.value, ())
    return replace(document, value=value, interpolated=frozenset(interpolated))


def _is_text(value: Json) -> bool:
    return isinstance(value, str)
