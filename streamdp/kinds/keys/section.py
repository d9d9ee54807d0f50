"""The section of a release of keys, and which texts may be published.

The rule is on the text alone, so it costs nothing.
"""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from streamdp.kinds.section import FACTS, Group, ReleaseSection
from streamdp.privacy.price import Price
from streamdp.sections.values import PositiveRational
from streamdp.types import MOST_LONGEST, Key

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


MOST_LISTED = 10_000
"""Keys that a configuration lists."""


class KeysSection(ReleaseSection):
    """Keys of every batch: which there are, and how many units hold each."""

    measures_of_price = frozenset({"epsilon", "rho"})
    published: ClassVar[frozenset[str]] = frozenset(
        {
            "found",
            "batches",
            "count",
            "lower",
            "upper",
            "smoothed",
            "smoothed_lower",
            "smoothed_upper",
            "flag",
        }
    )

    kind: Literal["keys"] = Field(
        description="`keys`: groups that are found in the data, and how many units are in each."
    )
    by: tuple[str, ...] = Field(
        min_length=1,
        description="Column or columns whose texts are the key of a record, compared byte by byte."
        " Null and empty text are no key.",
        examples=["city", ["carrier", "origin"]],
    )
    delta: PositiveRational = Field(
        description="Chance with which finding keys may cost a unit more than the price, for each"
        " release. The caps need a `delta` too.",
        examples=["1e-9"],
    )
    window: int = Field(
        default=1,
        ge=1,
        le=366,
        strict=True,
        description="How many batches are asked at once: rare keys are found in many. The release"
        " of a window has the key of its last batch, and is paid once. Default 1.",
        examples=[7],
    )
    at_least: int = Field(
        default=5,
        ge=1,
        le=10**6,
        strict=True,
        description="No key of fewer units is ever found. Default 5.",
        examples=[20],
    )
    longest: int = Field(
        default=64,
        ge=1,
        le=MOST_LONGEST,
        strict=True,
        description="Bytes of one text of a key in UTF-8; longer ones are no key. Default 64.",
    )
    public: tuple[Group, ...] = Field(
        default=(),
        max_length=MOST_LISTED,
        description="Keys that are public and so known from the start; they are counted from the"
        " first release on. Default: none.",
        examples=[["AA", "UA"]],
    )
    never: tuple[Group, ...] = Field(
        default=(),
        max_length=MOST_LISTED,
        description="Keys that are never published. Default: none.",
        examples=[["N/A", "test"]],
    )

    @field_validator("public", "never", mode="before")
    @classmethod
    def _keys(cls, value: Any) -> Any:
        if not isinstance(value, list | tuple):
            raise ValueError("this must be a list of keys")
        return [each if isinstance(each, list | tuple) else [each] for each in value]

    @model_validator(mode="after")
    def _groups_are_public(self) -> KeysSection:
        """Keys take the place of groups."""
        if self.groups or self.groups_from is not None:
            raise ValueError("keys are found in the data: list those that are public under public")
        if len(set(self.by)) != len(self.by) or set(self.by) & (FACTS | self.published):
            raise ValueError("by names a column twice, or one that releases have themselves")
        for name, keys in (("public", self.public), ("never", self.never)):
            if any(len(key) != len(self.by) for key in keys):
                raise ValueError(f"each key of {name} needs one text for each column of by")
            if len(set(keys)) != len(keys):
                raise ValueError(f"{name} lists a key twice")
        for key in self.public:
            if not publishable(key, self.longest):
                raise ValueError(
                    f"public lists {', '.join(key)!r}, whose text no key has: it is too long, has"
                    " blanks around it, begins like a formula, or holds signs that do not show"
                )
        if self.window > 1 and self.gate is not None:
            raise ValueError("a gate is asked about each batch, and a window has several")
        if set(self.public) & set(self.never):
            raise ValueError("a key is in public and in never")
        if self.delta >= 1:
            raise ValueError("delta is a chance, far below 1")
        return self

    @property
    def price(self) -> Price:
        """Price of one release for a unit, with its delta."""
        return replace(super().price, delta=self.delta)

    @property
    def asked_together(self) -> int:
        """The batches of a window."""
        return self.window

    @property
    def cut_by(self) -> tuple[str, ...]:
        """None: the columns are those of keys."""
        return ()

    def about_texts(self, *, of_units: bool) -> str:
        """What is found, and what is never."""
        who = "units" if of_units else "records"
        often = "" if of_units else "; one person who writes a text often enough publishes it"
        where = "batch" if self.window == 1 else f"window of {self.window} batches"
        return (
            f"texts of {', '.join(self.by)}: none that fewer than {self.at_least} {who} of a"
            f" {where} hold is ever found, none is invented; a found text is public for ever{often}"
        )

    def about_errors(self) -> str:
        """What the intervals hold."""
        return (
            "lower and upper are meant to hold the number of the batch"
            " 95 times in 100, and so are smoothed_lower and smoothed_upper"
        )
