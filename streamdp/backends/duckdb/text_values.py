"""Values of text formats: SQL of what a declared type makes of a text, null where it is none."""

from __future__ import annotations

from streamdp.backends.sql.words import quoted
from streamdp.types.text_fields import has_time_of_day

TYPES = {
    "number": "DOUBLE",
    "timestamp": "TIMESTAMPTZ",
    "date": "DATE",
    "boolean": "BOOLEAN",
    "text": "VARCHAR",
}
"""Types that the engine reads by itself. A time without an offset is UTC."""

_COMMA = r"\s*[-+]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?\s*"
"""A point stands between thousands only: `12.5` would otherwise be read as 125."""


def typed(text: str, declared: str) -> str:
    """SQL of the value that a text has under a declared type; it looks at this text alone.

    Args:
        text: SQL of the text.
        declared: One of `FIELD_TYPES`, or how dates or times are written.
    """
    if declared == "text":
        return text
    if declared in TYPES:
        return f"TRY_CAST({text} AS {TYPES[declared]})"
    if declared == "decimal-comma":
        fits = f"regexp_full_match({text}, {quoted(_COMMA, chr(39))})"
        number = f"replace(replace({text}, '.', ''), ',', '.')"
        return f"TRY_CAST(CASE WHEN {fits} THEN {number} END AS DOUBLE)"
    kind = "TIMESTAMPTZ" if has_time_of_day(declared) else "DATE"
    return f"TRY_CAST(TRY_STRPTIME({text}, {quoted(declared, chr(39))}) AS {kind})"
