"""The release kind `keys`: how it is built, checked, how accurate it is, which groups it finds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from streamdp.kinds.charging import least_price
from streamdp.kinds.keys.section import KeysSection
from streamdp.kinds.section import CheckContext, GroupsFrom, Problem
from streamdp.kinds.spec import BuildContext, KindSpec
from streamdp.kinds.statistics.measures.protocol import LEVEL
from streamdp.mechanisms.key_selection import selection_at
from streamdp.sections.expressions import expression
from streamdp.types import Key, Row

if TYPE_CHECKING:
    from streamdp.kinds.keys.kind import Keys
    from streamdp.kinds.study import Study
    from streamdp.privacy.price import Price


class KeysFound:
    """The error that 95 % of counts stay within, and the units of a key that is soon found."""

    def expected(self, kind: Keys) -> Mapping[str, float | None]:
        """Error of counts of known keys as drawn, and the units at which half of keys are found."""
        selection = kind.selection
        return {
            "error_95": float(selection.noise.reach(LEVEL)),
            "found_half_of_the_time_at": float(selection.half),
        }

    def price_for(self, kind: Keys, error: float) -> Price | None:
        """Price for one record at which counts are so near."""

        def reach(price: Price) -> float:
            try:
                whole = price.of_unit(kind.keys_per_unit)
                exchanged = kind.neighbours == "substitute"
                made = selection_at(
                    whole, kind.delta, kind.keys_per_unit, kind.at_least, substitute=exchanged
                )
            except ValueError:
                return float("inf")
            return float(made.noise.reach(LEVEL))

        return least_price(reach, error, kind.price.measure)


def groups_among(section: KeysSection, wanted: GroupsFrom, rows: Sequence[Row]) -> tuple[Key, ...]:
    """The largest keys by what all releases say; quiet ones are left out.

    Keys that were found just now have no count yet. They come last, where the fewest units of a key
    that is found are enough.

    Args:
        section: Of the release of keys.
        wanted: How many, and from which smoothed count on.
        rows: Of the release.
    """

    def rank(row: Row) -> tuple[float, list[str]]:
        return -float(row["smoothed"] or 0), [str(row[name]) for name in section.by]

    def large(row: Row) -> bool:
        if row["smoothed"] is None:
            return section.at_least >= wanted.at_least
        return not row["flag"] and float(row["smoothed"]) >= wanted.at_least

    kept = sorted(filter(large, rows), key=rank)
    return tuple(tuple(str(row[name]) for name in section.by) for row in kept[: wanted.most])


def build(section: KeysSection, context: BuildContext) -> Keys:
    """The kind; a unit counts for as many keys as its records that count."""
    from streamdp.kinds.keys.kind import Keys

    return Keys(
        by=section.by,
        price=section.price,
        delta=section.delta,
        keys_per_unit=context.rows,
        window=section.window,
        at_least=section.at_least,
        longest=section.longest,
        public=section.public,
        never=frozenset(section.never),
        where=None if section.where is None else expression(section.where, context.dialect),
        neighbours=context.neighbours,
        counted=f"{context.unit}s" if context.counted != "records" else "records",
    )


def check(section: KeysSection, context: CheckContext) -> Iterator[Problem]:
    """Yields prices and deltas that are too small for the keys of a unit."""
    try:
        selection_at(
            section.price,
            section.delta,
            context.rows,
            section.at_least,
            substitute=context.neighbours == "substitute",
        )
    except ValueError as error:
        yield Problem(
            (section.price.measure,),
            str(error),
            "or bound the rows of a unit more tightly: each may hold a key of its own",
        )


def _study() -> Study:
    """Study of the kind, imported by `simulate` alone."""
    from streamdp.kinds.keys.study import KeysStudy

    return KeysStudy()


SPEC = KindSpec(
    "keys",
    KeysSection,
    check,
    build,
    KeysFound(),
    study=_study,
    pools_groups=True,
    groups=groups_among,
    no_periods=lambda _: "counts of found keys are those of a batch: others were not published",
)
