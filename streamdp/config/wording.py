"""Messages about wrong values, in the words of the file: pydantic's are those of its code."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

import yaml

from streamdp.types import Json

Place = tuple[str | int, ...]
"""Keys and numbers that lead to a value."""

_SECTION = "this must be a section: keys with their values"
_NAME = "a name begins with a letter and goes on with letters, digits and"

TEXTS = {
    "missing": "this key is missing",
    "empty": "this key has no value",
    "extra_forbidden": "this key is not known",
    "string_type": "this must be a text",
    "bool_type": "this must be true or false",
    "bool_parsing": "this must be true or false",
    "int_type": "this must be a whole number",
    "int_parsing": "this must be a whole number",
    "int_from_float": "this must be a whole number",
    "float_type": "this must be a number",
    "float_parsing": "this must be a number",
    "finite_number": "this must be a finite number",
    "list_type": "this must be a list: [one, another]",
    "tuple_type": "this must be a list: [one, another]",
    "dict_type": _SECTION,
    "model_type": _SECTION,
    "model_attributes_type": _SECTION,
    "path_type": "this must be a path",
    "literal_error": "this must be {expected}",
    "enum": "this must be {expected}",
    "too_short": "this must hold {min_length} or more",
    "too_long": "this must hold {max_length} or fewer",
    "string_too_short": "this must not be empty",
    "string_too_long": "this must have {max_length} characters or fewer",
    "greater_than": "this must be above {gt}",
    "greater_than_equal": "this must be {ge} or more",
    "less_than": "this must be below {lt}",
    "less_than_equal": "this must be {le} or less",
    "union_tag_invalid": "{tag!r} is none of {expected_tags}",
    "union_tag_not_found": "say which kind it is: kind is missing",
    "frozen_instance": "this cannot be changed",
}
"""Words by the type of pydantic's error; the facts are those it has found."""


def wording(problem: Mapping[str, Any]) -> str:
    """One problem in plain words."""
    kind, facts = str(problem["type"]), dict(problem.get("ctx") or {})
    if kind == "string_pattern_mismatch":
        return f"{_NAME} {'. _ -' if '-]' in facts['pattern'] else '_'}"
    if kind in TEXTS:
        return TEXTS[kind].format_map(facts)
    return str(problem["msg"]).removeprefix("Value error, ")


def advice(problem: str, schema: Json, document: Json, place: Place) -> str:
    """Advice on a wrong value; nothing where the message says it already.

    Args:
        problem: Type of pydantic's error.
        schema: JSON Schema of the configuration.
        document: The values that were read.
        place: Of the key.
    """
    if not place:
        return ""
    if problem == "extra_forbidden":
        return _nearest(schema, document, place)
    if problem in ("missing", "empty", "dict_type", "model_type", "model_attributes_type"):
        return _example(schema, document, place)
    return ""


def _nearest(schema: Json, document: Json, place: Place) -> str:
    """The nearest key of the section, or all of them."""
    known = sorted(set(_properties(schema, document, place[:-1])) - {str(place[-1])})
    near = difflib.get_close_matches(str(place[-1]), known, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"here are known: {', '.join(known)}" if known else "`streamdp schema` lists all keys"


def _example(schema: Json, document: Json, place: Place) -> str:
    """A value that the key may have."""
    found = _properties(schema, document, place[:-1]).get(str(place[-1]), {})
    examples = found.get("examples", ()) if isinstance(found, dict) else ()
    sections = [each for each in examples if isinstance(each, dict)]
    chosen = (sections or list(examples))[:1]
    return f"such as {place[-1]}: {_flow(chosen[0])}" if chosen else ""


def _flow(value: Json) -> str:
    """A value on one line of YAML."""
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10_000)
    return str(text).removesuffix("...\n").strip()


def _properties(schema: Json, document: Json, place: Place) -> dict[str, Json]:
    """Keys that may stand in the section at a place, with their forms."""
    forms, value = _forms(schema, schema, document), document
    for part in place:
        value = _within(value, part)
        forms = [form for each in forms for form in _forms(schema, _below(each, part), value)]
    return {key: found for form in forms for key, found in form.get("properties", {}).items()}


def _within(value: Json, part: str | int) -> Json:
    if isinstance(value, dict):
        return value.get(str(part))
    inside = isinstance(value, list) and isinstance(part, int) and part < len(value)
    return value[part] if inside else None


def _below(form: Json, part: str | int) -> Json:
    """Value under a key or a number."""
    if isinstance(part, int):
        return form.get("items", {})
    named = form.get("properties", {}).get(part)
    return named or next(iter(form.get("patternProperties", {}).values()), {})


def _forms(schema: Json, form: Json, value: Json) -> list[Json]:
    """A form, without references, and all that it may be instead, if its `kind` does not say."""
    if not isinstance(form, dict):
        return []
    if "$ref" in form:
        return _forms(schema, schema["$defs"][form["$ref"].rsplit("/", 1)[1]], value)
    kinds = form.get("discriminator", {}).get("mapping", {})
    chosen = kinds.get(value.get("kind")) if isinstance(value, dict) else None
    if chosen:
        return [form, *_forms(schema, {"$ref": chosen}, value)]
    others = [*form.get("anyOf", ()), *form.get("oneOf", ())]
    return [form, *(found for other in others for found in _forms(schema, other, value))]
