"""Folders of tables, told from others without reading the table."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Literal

LakeFormat = Literal["delta", "iceberg"]
"""Formats whose `path` is the folder of a table."""

MARK: dict[LakeFormat, str] = {"delta": "_delta_log", "iceberg": "metadata"}
"""Name of what every folder of a table has in it."""


def lies_in_table(path: str) -> LakeFormat | None:
    """Format of the table that a path or the wildcards of a pattern lie in, if any."""
    fixed = os.path.realpath(re.split(r"[*?[]", path)[0] + "x")
    for each in Path(fixed).parents:
        if os.path.isdir(each / MARK["delta"]):
            return "delta"
        if iceberg_metadata(str(each)):
            return "iceberg"
    return None


def iceberg_metadata(folder: str) -> list[str]:
    """Names of the metadata files of an Iceberg table; none if a folder is of no such table."""
    try:
        names = os.listdir(os.path.join(folder, MARK["iceberg"]))
    except OSError:
        return []
    return sorted(name for name in names if re.search(r"\.metadata\.json(\.gz)?$", name))
