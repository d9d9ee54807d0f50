"""Types of MariaDB as its protocol tells them, in names of its own."""

from __future__ import annotations

from typing import Any

BINARY = 63
"""Number of the character set of what is no text."""

UNSIGNED = 32
"""Flag of a column without a sign."""

_NAMES = {
    1: "tinyint",
    2: "smallint",
    3: "int",
    4: "float",
    5: "double",
    6: "null",
    7: "timestamp",
    8: "bigint",
    9: "mediumint",
    10: "date",
    11: "time",
    12: "datetime",
    13: "year",
}
"""By the numbers of the protocol, `enum_field_types`."""

_DECIMAL = (0, 246)
_SHORT = (15, 253, 254)
_LONG = (249, 250, 251, 252)


def kind_of(field: Any) -> str:
    """Name of a column's type; a text or bytes with its length in bytes, a decimal with its digits.

    Args:
        field: As PyMySQL reads it from the server.
    """
    number, binary = field.type_code, field.charsetnr == BINARY
    if number in _SHORT:
        return f"{'varbinary' if binary else 'varchar'}({field.length})"
    if number in _LONG:
        return "blob" if binary else "text"
    if number in _DECIMAL:
        around = (field.scale > 0) + (not field.flags & UNSIGNED)  # its point and its sign
        return f"decimal({field.length - around},{field.scale})"
    return _NAMES.get(number, f"type {number}")
