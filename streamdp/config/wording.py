"""Messages about wrong values, in the words of the file: pydantic's are those of its code."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from streamdp.types import Json

TEXTS = {
    "missing": "this key is missing",
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
    "dict_type": "this must be a section: keys with their values, each on a line below it",
    "model_type": "this must be a section: keys with their values, each on a line below it",
    "model_attributes_type": "this must be a section: keys with their values, below it",
    "path_type": "this must be a path",
    "literal_error": "this must be {expected}",
    "enum": "this must be {expected}",
    "too_short": "this must hold {min_length} or more",
    "too_long": "this must hold {max_length} or fewer",
    "string_too_short": "this must not be empty",
    "string_too_long": "this must have {max_length} characters or fewer",
    "string_pattern_mismatch": "this name has a character that is not admitted: letters, digits"
    " and _ are, and it begins with a letter",
    "greater_than": "this must be above {gt}",
    "greater_than_equal": "this must be {ge} or more",
    "less_than": "this must be below {lt}",
    "less_than_equal": "this must be {le} or less",
    "union_tag_invalid": "{tag!r} is none of {expected_tags}",
    "union_tag_not_found": "say which kind it is: kind is missing",
    "frozen_instance": "this cannot be changed",
}
"""By the type of pydantic's error; the facts are those it has found."""


def wording(problem: Mapping[str, Any]) -> str:
    """One problem in plain words."""
    kind, facts = str(problem["type"]), dict(problem.get("ctx") or {})
    if kind in TEXTS:
        return TEXTS[kind].format_map(facts)
    return str(problem["msg"]).removeprefix("Value error, ")


def nearest(schema: Json, place: tuple[str | int, ...]) -> str:
    """Advice about an unknown key: the nearest key of its section, or all of them.

    Args:
        schema: JSON Schema of the configuration.
        place: Of the key.
    """
    known = sorted(_keys(schema, place[:-1]) - {str(place[-1])})
    near = difflib.get_close_matches(str(place[-1]), known, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"here are known: {', '.join(known)}" if known else "`streamdp schema` lists all keys"


def _keys(schema: Json, place: tuple[str | int, ...]) -> set[str]:
    """Keys that may stand at a place."""
    forms = _forms(schema, schema)
    for part in place:
        forms = [form for each in forms for form in _forms(schema, _below(each, part))]
    return {name for form in forms for name in form.get("properties", {})}


def _below(form: Json, part: str | int) -> Json:
    """Value under a key or a number."""
    if isinstance(part, int):
        return form.get("items", {})
    named = form.get("properties", {}).get(part)
    return named or next(iter(form.get("patternProperties", {}).values()), {})


def _forms(schema: Json, form: Json) -> list[Json]:
    """A form, without references, and all that it may be instead."""
    if not isinstance(form, dict):
        return []
    if "$ref" in form:
        return _forms(schema, schema["$defs"][form["$ref"].rsplit("/", 1)[1]])
    others = [*form.get("anyOf", ()), *form.get("oneOf", ())]
    return [form, *(found for other in others for found in _forms(schema, other))]
