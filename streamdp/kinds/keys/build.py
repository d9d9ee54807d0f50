"""The release kind `keys`, of a configured release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamdp.config.base.expressions import expression
from streamdp.kinds.keys.section import KeysSection

if TYPE_CHECKING:
    from streamdp.kinds.keys.kind import Keys
    from streamdp.kinds.spec import BuildContext


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
