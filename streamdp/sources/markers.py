"""Markers: a file that another program leaves when the records of a batch are complete."""

from __future__ import annotations

import os

KEY = "{key}"
"""Stands in a marker's path for the key of the batch."""


def is_complete(marker: str | None, key: str) -> bool:
    """Whether the marker of a batch is there; without markers each batch is complete.

    That it is there is public, as is the hour at which it came.
    """
    return marker is None or os.path.isfile(marker.replace(KEY, key))
