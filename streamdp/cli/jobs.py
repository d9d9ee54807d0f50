"""Naming a job on the command line."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from streamdp.errors import ConfigurationError

if TYPE_CHECKING:
    from streamdp.config import Configuration


def require_job(configuration: Configuration, job: str) -> None:
    """Refuse a name that is not configured.

    Raises:
        ConfigurationError: With the nearest name.
    """
    names = list(configuration.releases)
    if job not in names:
        near = difflib.get_close_matches(job, names, n=1)
        raise ConfigurationError(
            f"there is no release {job!r} in the configuration",
            where="releases",
            hint=f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(names)}",
        )
