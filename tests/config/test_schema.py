"""The JSON Schema that editors show: every key is described, and every example is admitted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from streamdp.config import json_schema
from streamdp.kinds.spec import KINDS
from streamdp.sections.section import Section


def _properties(schema: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every key of every mapping at any depth: definitions, unions, items, patterns of names."""
    if isinstance(schema, list):
        for index, each in enumerate(schema):
            yield from _properties(each, (*path, index))
    elif isinstance(schema, dict):
        for name, each in schema.items():
            if name in ("default", "examples", "const", "enum"):
                continue
            within = isinstance(each, dict) and name in ("properties", "$defs")
            if within and name == "properties":
                for key, about in each.items():
                    yield "/".join(map(str, (*path, key))), about
            below = each.items() if within else (("", each),)
            for key, child in below:
                yield from _properties(child, (*path, name, key) if key else (*path, name))


def _undescribed(schema: Any) -> list[str]:
    return [key for key, about in _properties(schema) if not str(about.get("description", ""))]


def test_every_key_has_a_description() -> None:
    """Of all kinds, sources, engines, sinks, gates, priors, web, log, store and privacy."""
    schema = json_schema()
    named = {definition.rsplit("__", 1)[-1] for definition in schema["$defs"]}
    assert named >= {spec.section.__name__ for spec in KINDS.all()}
    assert len(list(_properties(schema))) > 290
    assert _undescribed(schema) == []


def test_descriptions_are_sentences() -> None:
    """They begin with a capital or a word of the file, and end with a full stop."""
    texts = [about["description"] for _, about in _properties(json_schema())]
    assert [text for text in texts if not text.endswith(".")] == []
    assert [text for text in texts if not (text[0].isupper() or text[0] == "`")] == []


@pytest.mark.parametrize(
    "place",
    [
        {"properties": {"key": {}}},
        {"$defs": {"Name": {"properties": {"key": {}}}}},
        {"$defs": {"properties": {"properties": {"key": {}}}}},
        {"properties": {"one": {"description": "One.", "properties": {"key": {}}}}},
        {"properties": {"properties": {"description": "One.", "properties": {"key": {}}}}},
        {"anyOf": [{"type": "null"}, {"properties": {"key": {}}}]},
        {"oneOf": [{"items": {"properties": {"key": {}}}}]},
        {"prefixItems": [{"properties": {"key": {}}}]},
        {"patternProperties": {"^a$": {"properties": {"key": {}}}}},
        {"additionalProperties": {"properties": {"key": {}}}},
    ],
)
def test_the_walk_reaches_every_place(place: Any) -> None:
    """A key without a description is found wherever a schema may hold one."""
    assert [key.rsplit("/", 1)[-1] for key in _undescribed(place)] == ["key"]


def _sections(above: type[Section] = Section) -> Iterator[type[Section]]:
    for each in above.__subclasses__():
        if each.__module__.startswith("streamdp."):
            yield each
            yield from _sections(each)


def test_examples_are_admitted() -> None:
    """What is shown as an example may stand at its key."""
    tried, refused = 0, []
    for section in {each for each in _sections() if each.__name__ != "ReleaseSection"}:
        for name, field in section.model_fields.items():
            key = field.alias or name
            for example in field.examples or ():
                tried += 1
                try:
                    section.model_validate({key: example})
                except ValidationError as error:
                    wrong = [each for each in error.errors() if each["loc"][:1] == (key,)]
                    refused += [(section.__name__, key, each["msg"]) for each in wrong]
    assert tried > 100
    assert refused == []
