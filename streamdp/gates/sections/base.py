"""Facts that a gate's test states about itself before a batch is looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import ClassVar, Literal

from streamdp.config.base.section import Section


def quantiles_of(release: Section | None) -> tuple[Fraction, ...]:
    """The quantiles that a release publishes; none if it is of another kind."""
    return getattr(release, "quantiles", ())


Asks = Literal["cells", "counts", "rules", "scores"]
"""The cells of a column, a table of counts, rules and a label, or the scores of candidates."""

Found = tuple[tuple[str | int, ...], str, str]
"""A problem: keys, what is wrong, what to do."""

Tables = Mapping[str, tuple[str, ...]]
"""Names of tables of counts, each with its cells."""


class TestSection(Section):
    """A test, as the configuration writes it.

    `reads` names the kinds whose published values the test compares a batch with; it is None where
    it needs none of them, so that any release will do whose column can be counted.
    """

    reads: ClassVar[frozenset[str] | None] = None

    @property
    def asks(self) -> Asks:
        """What of a batch it is put to."""
        return "cells"

    def problems(self, release: Section, tables: Tables) -> Iterator[Found]:
        """Problems between the test and the first release of the gate.

        Args:
            release: Its section.
            tables: Names of its tables of counts, and of their cells.
        """
        yield from ()

    def why_not_alone(self) -> str | None:
        """Why a gate without a release cannot put a batch to it; None if it can."""
        return None

    def draws(self, *, priced: bool) -> bool:
        """Whether it is a private draw rather than a count, with or without a `test_epsilon`."""
        return False

    def slack(self) -> tuple[Fraction, bool]:
        """Delta of one draw, and whether its chance of a yes is sampled instead of computed."""
        return Fraction(0), False

    def table(self) -> str:
        """Name of the table of counts of the release that it is put to; "" if it asks for cells."""
        return ""

    def condition(self) -> str | None:
        """SQL condition of the records that a gate without a release counts; None for all."""
        return None

    def most(self, quantiles: tuple[Fraction, ...], rows: int | None) -> int | None:
        """The largest score that a batch can have, in records; None if nobody can say.

        Args:
            quantiles: Of the release, if it has any.
            rows: That a batch is expected to have; None if nothing is expected.
        """
        return None
