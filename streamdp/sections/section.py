"""The base of all sections of the configuration, and sections whose `kind` says their keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from streamdp.text import known_names
from streamdp.types import Json


class Section(BaseModel):
    """A mapping of the file; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class ByKind:
    """Looks a section up by its `kind`, for a value and for the schema.

    Args:
        what: One of them, as errors call it.
        names: All kinds there are.
        section: The section of a kind; None if there is none.
    """

    what: str
    names: Callable[[], Iterable[str]]
    section: Callable[[str], type[Section] | None]

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._validated)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> Json:
        first, *others = dict.fromkeys(self.section(name) for name in self.names())
        union: Any = first
        for each in others:
            union |= each
        if others:
            union = Annotated[union, Field(discriminator="kind")]
        return handler(TypeAdapter(union).core_schema)

    def _validated(self, value: Any) -> Section:
        """The section of a mapping.

        Raises:
            ValueError: It is none, or pydantic's list of what is wrong with it.
        """
        if isinstance(value, Section):
            return value
        if not isinstance(value, dict):
            raise ValueError(f"this must be a mapping with the keys of a {self.what}")
        kind = value.get("kind")
        section = self.section(kind) if isinstance(kind, str) else None
        if section is not None:
            return section.model_validate(value)
        about = {"kind": str(kind), "known": known_names(str(kind), list(self.names()))}
        said = f"there is no {self.what} of kind '{{kind}}': {{known}}"
        problem = "missing" if "kind" not in value else PydanticCustomError("kind", said, about)
        raise ValidationError.from_exception_data(
            self.what, [{"type": problem, "loc": ("kind",), "input": value}]
        )
