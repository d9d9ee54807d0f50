"""The release kind `keys`: problems that no single key of its section shows."""

from __future__ import annotations

from collections.abc import Iterator

from streamdp.config.base.releases import CheckContext, Problem
from streamdp.kinds.keys.section import KeysSection
from streamdp.mechanisms.key_selection.selection import selection_at


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
