"""A release of any kind; `kind` selects its section."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import (
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from streamdp.config.base.releases import ReleaseSection
from streamdp.kinds import registry
from streamdp.text import known_names
from streamdp.types import Json


class _ByKind:
    """Looks the section up in the registry of kinds, for a value and for the schema."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(_section)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> Json:
        sections = tuple(spec.section for spec in registry.all_kinds())
        union: Any = sections[0]
        for each in sections[1:]:
            union |= each
        if len(sections) > 1:
            union = Annotated[union, Field(discriminator="kind")]
        return handler(TypeAdapter(union).core_schema)


Release = Annotated[ReleaseSection, _ByKind()]
"""The section of a release, of whatever kind it says."""


def _section(value: Any) -> ReleaseSection:
    """The section of a mapping.

    Raises:
        ValueError: It is none, or pydantic's list of what is wrong with it.
    """
    if isinstance(value, ReleaseSection):
        return value
    if not isinstance(value, dict):
        raise ValueError("this must be a mapping with the keys of a release")
    kind = value.get("kind")
    spec = registry.find(kind) if isinstance(kind, str) else None
    if spec is not None:
        return spec.section.model_validate(value)
    names = registry.names()
    text = known_names(str(kind), names)
    problem = (
        "missing"
        if "kind" not in value
        else PydanticCustomError("kind", "there is no such kind of release: {text}", {"text": text})
    )
    raise ValidationError.from_exception_data(
        "Release", [{"type": problem, "loc": ("kind",), "input": value}]
    )
