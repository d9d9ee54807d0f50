"""What `streamdp anchor adopt` does, with a clock to turn."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing

from streamdp.config import Configuration
from streamdp.planning.lost_spending import bounds
from streamdp.store.database import connect
from streamdp.store.migrations import migrate, open_to_read
from streamdp.store.reconcile import Bound, adopt
from streamdp.types import Json


def adopted(
    configuration: Configuration, about: Json, now: int, stated: Mapping[str, int] | None = None
) -> dict[str, Bound]:
    """Charge bounds, of which some are stated in nano units; no file was removed meanwhile."""
    path, anchor = configuration.store.paths()
    with closing(connect(path, create=False)) as database:
        migrate(database, now)
    with closing(open_to_read(path)) as database:
        found = bounds(configuration, database, now, stated or {}, kept=True)
    terms, data = configuration.terms(), configuration.data()
    adopt(path, anchor, found, terms, data, about, now)
    return found
