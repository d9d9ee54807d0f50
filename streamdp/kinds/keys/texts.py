"""Texts that may be published: a rule on the text alone, so that it costs nothing."""

from __future__ import annotations

import unicodedata

from streamdp.types import Key

REFUSED = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of signs that hide, turn others around, or are none: control and format signs such as
those of direction and of no width, surrogates, private and unassigned ones, line separators."""

FORMULA = frozenset("=+-@")
"""First signs that a spreadsheet reads as the begin of a formula."""


def publishable(key: Key, longest: int) -> bool:
    r"""Whether every text of a key may be published.

    Texts are in normal form C and have no blanks around them, so two keys that look alike but for
    these are one key and one that is never published.

    >>> [publishable((text,), 8) for text in ("Zürich", " a", "=1+1", "a" * 9, "a\u200bb")]
    [True, False, False, False, False]
    """
    for text in key:
        if text == "" or text[0] in FORMULA or text != text.strip():
            return False
        # what is printable has no refused sign; ASCII is in normal form, and a sign is a byte
        printable = text.isprintable()
        plain = printable and text.isascii()
        size = len(text) if plain else len(text.encode("utf-8", "surrogatepass"))
        if size > longest or not (plain or _composed(text, printable=printable)):
            return False
    return True


def _composed(text: str, *, printable: bool) -> bool:
    return (
        printable or not any(unicodedata.category(sign) in REFUSED for sign in text)
    ) and unicodedata.is_normalized("NFC", text)
