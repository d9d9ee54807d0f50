"""Environment variables in values: ${NAME}, or ${NAME:-default}; for secrets and for places."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from streamdp.errors import ConfigurationError
from streamdp.sections.document import Document, Path
from streamdp.text import is_text
from streamdp.types import Json

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


def interpolate(document: Document, environment: Mapping[str, str]) -> Document:
    """The document with every reference replaced; values stay text.

    Raises:
        ConfigurationError: A variable is not set and has no default. Its value is never shown.
    """
    interpolated: set[Path] = set()

    def walk(value: Json, path: Path) -> Json:
        if isinstance(value, dict):
            return {key: walk(child, (*path, key)) for key, child in value.items()}
        if isinstance(value, list):
            return [walk(child, (*path, index)) for index, child in enumerate(value)]
        return _REFERENCE.sub(lambda m: look_up(m, path), value) if _is_text(value) else value

    def look_up(match: re.Match[str], path: Path) -> str:
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
