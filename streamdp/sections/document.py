"""Strict YAML with the place of each value, and how a value of it is refused.

PyYAML accepts a key twice, reads 12:30 as 750, 010 as 8 and `no` as false. Here a key stands
once, and a plain scalar is a number, true, false, null or text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn

import yaml

from streamdp.errors import ConfigurationError
from streamdp.text import is_text, known_names
from streamdp.types import Json

Path = tuple[str | int, ...]

DEEPEST = 30
MOST_VALUES = 100_000
"""Bounds of a file, aliases followed: an alias may hold itself."""

WRITTEN_AS = {"groups_from": "groups"}
"""Keys that may be written as others: `groups: {from: JOB}` is read as `groups_from`."""

LONGEST_NUMBER = 100
"""Characters of a number; nothing that is configured needs as many."""

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The parser in C, ten times as fast, where PyYAML was built with it."""

_ENDLESS = "this is nested too deeply or holds far too much"

_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_NUMBER = re.compile(r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
_CONSTANTS: dict[str, Json] = {"": None, "null": None, "~": None, "true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed file.

    Args:
        name: Of the file, as shown in errors.
        value: Nested dicts, lists and scalars.
        marks: Line and column (from 1) of each value, by its path of keys.
        interpolated: Paths of the values that came from the environment, whole or in part.
        path: Of the file; empty for a text without one.
    """

    name: str
    value: Json
    marks: dict[Path, tuple[int, int]]
    interpolated: frozenset[Path] = frozenset()
    path: str = ""

    def where(self, path: Path) -> str:
        """Place of a value, or of the nearest thing that holds it: `config.yaml:12:5 a.b`."""
        path = tuple(
            WRITTEN_AS.get(str(key), key) if path[: place + 1] not in self.marks else key
            for place, key in enumerate(path)
        )
        known = path
        while known not in self.marks:
            known = known[:-1]
        line, column = self.marks[known]
        dotted = ".".join(map(str, path))
        return f"{self.name}:{line}:{column}" + (f" {dotted}" if dotted else "")


def parse(text: str, name: str) -> Document:
    """Parse one YAML document.

    Raises:
        ConfigurationError: It is no YAML, or a key is given twice.
    """
    try:
        root = _composed(text, name)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        problem = error.problem or "cannot be parsed"
        raise ConfigurationError(
            f"this is not YAML: {problem}", where=f"{name}{place}", hint=_advice(problem)
        ) from None
    except yaml.YAMLError:
        raise ConfigurationError("this is not YAML text", where=name) from None
    except RecursionError:
        raise ConfigurationError("this is nested too deeply", where=name) from None
    marks: dict[Path, tuple[int, int]] = {(): (1, 1)}
    if root is None:
        return Document(name, {}, marks)
    return Document(name, _build(root, (), name, marks), marks)


def _advice(problem: str) -> str:
    if "\\t" in problem:
        return "indent with spaces"
    return (
        "look here and at the line above: keys of one section begin in one column, and each has a"
        " colon and a space behind it"
    )


def _composed(text: str, name: str) -> yaml.Node | None:
    """The nodes of a text; errors come from the parser in Python, which words them better."""
    try:
        _require_bounded(text, name, _LOADER)
        return yaml.compose(text, Loader=_LOADER)
    except yaml.YAMLError:
        _require_bounded(text, name, yaml.SafeLoader)
        return yaml.compose(text, Loader=yaml.SafeLoader)


def _require_bounded(text: str, name: str, loader: type[yaml.SafeLoader]) -> None:
    """Refuse very deep nesting, which would crash the parser in C, and more values than are built.

    Events are read one by one; nodes would all be in memory.
    """
    depth = 0
    for number, event in enumerate(yaml.parse(text, Loader=loader)):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST + 1 or number > 3 * MOST_VALUES:
            mark = event.start_mark
            place = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
            raise ConfigurationError(_ENDLESS, where=f"{name}{place}")


def _build(node: yaml.Node, path: Path, name: str, marks: dict[Path, tuple[int, int]]) -> Json:
    line, column = node.start_mark.line + 1, node.start_mark.column + 1
    if len(path) > DEEPEST or len(marks) > MOST_VALUES:
        raise ConfigurationError(_ENDLESS, where=f"{name}:{line}:{column}")
    marks[path] = (line, column)
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, path, name, marks)
    if isinstance(node, yaml.SequenceNode):
        return [_build(child, (*path, i), name, marks) for i, child in enumerate(node.value)]
    return _scalar(node, f"{name}:{line}:{column} {'.'.join(map(str, path))}")


def _mapping(
    node: yaml.MappingNode, path: Path, name: str, marks: dict[Path, tuple[int, int]]
) -> Json:
    built: dict[str, Json] = {}
    for key_node, value_node in node.value:
        line, column = key_node.start_mark.line + 1, key_node.start_mark.column + 1
        if not isinstance(key_node, yaml.ScalarNode):
            raise ConfigurationError("a key must be a word", where=f"{name}:{line}:{column}")
        key = _text(key_node.value, f"{name}:{line}:{column}")
        where = f"{name}:{line}:{column} {'.'.join(map(str, (*path, key)))}"
        if key in built:
            raise ConfigurationError(
                "this key is given twice", where=where, hint="keep one of them"
            )
        built[key] = _build(value_node, (*path, key), name, marks)
        marks[(*path, key)] = (line, column)
    return built


def _scalar(node: yaml.Node, where: str) -> Json:
    text = _text(node.value, where)
    if getattr(node, "style", None):
        return text
    if text.lower() in _CONSTANTS:
        return _CONSTANTS[text.lower()]
    if _NUMBER.fullmatch(text) and len(text) > LONGEST_NUMBER:
        raise ConfigurationError(
            f"this number has {len(text)} characters",
            where=where,
            hint=f"write it with {LONGEST_NUMBER} at most, or in quotes if it is a text",
        )
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text


def _text(value: Json, where: str) -> str:
    """A text that can be written: an escape may name half of a character."""
    text = str(value)
    if not is_text(text):
        raise ConfigurationError("this holds half of a character, a lone surrogate", where=where)
    return text


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
        refuse("this name is not configured", document, path, known_names(name, names))
