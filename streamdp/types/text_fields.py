"""Types that columns of text formats are declared to hold: words, and forms of dates and times."""

from __future__ import annotations

import re

FIELD_TYPES = ("number", "decimal-comma", "timestamp", "date", "boolean", "text")
"""Words for types; `decimal-comma` is a number such as `1.234,50`."""

_DIRECTIVE = re.compile(r"%-?(.)")
_TIME = frozenset("HIMSfpz")
_DAY = ("Yy", "mbB", "d")
"""One directive of each is needed to tell a day."""


def is_time_form(declared: str) -> bool:
    """Whether a text says how dates or times are written.

    >>> is_time_form("%d.%m.%Y %H:%M"), is_time_form("%Y"), is_time_form("float")
    (True, False, False)
    """
    found = set(_DIRECTIVE.findall(declared))
    known = found <= {"%", *_TIME, *"".join(_DAY)} and "%" not in _DIRECTIVE.sub("", declared)
    return known and all(found & set(part) for part in _DAY)


def has_time_of_day(form: str) -> bool:
    """Whether a form of dates or times tells more than the day."""
    return bool(_TIME & set(_DIRECTIVE.findall(form)))
