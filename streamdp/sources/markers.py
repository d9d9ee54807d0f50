"""Markers: a file that another program leaves when the records of a batch are complete."""

from __future__ import annotations

import glob
import os

from streamdp.objects.address import is_address, parsed

KEY = "{key}"
"""Stands in a marker's path for the key of the batch."""


def is_complete(marker: str | None, key: str) -> bool:
    """Whether the marker of a batch is there; without markers each batch is complete.

    That it is there is public, as is the hour at which it came.
    """
    return marker is None or os.path.isfile(marker.replace(KEY, key))


def with_key(marker: str) -> str:
    """A configured marker in its one form.

    Raises:
        ValueError: No batch's key stands in it.
    """
    if KEY not in marker or glob.has_magic(marker):
        raise ValueError("a marker is a path with {key} in it, where the batch's key stands")
    return str(parsed(marker)) if is_address(marker) else marker
