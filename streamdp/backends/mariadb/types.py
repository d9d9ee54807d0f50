"""Types of MariaDB as its protocol tells them, in names of its own."""

from __future__ import annotations

from typing import Any

BINARY = 63
"""Number of the character set of what is no text."""

_NAMES = {
    0: "decimal",
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
    246: "decimal",
}
"""By the numbers of the protocol, `enum_field_types`."""

_SHORT = (15, 253, 254)
_LONG = (249, 250, 251, 252)


def kind_of(field: Any) -> str:
    """Name of a column's type; a text or bytes with its length in bytes where it has one.

    Args:
        field: As PyMySQL reads it from the server.
    """
    number, binary = field.type_code, field.charsetnr == BINARY
    if number in _SHORT:
        return f"{'varbinary' if binary else 'varchar'}({field.length})"
    if number in _LONG:
        return "blob" if binary else "text"
    return _NAMES.get(number, f"type {number}")
