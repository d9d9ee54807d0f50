"""streamdp with a clock that is off by the seconds that a file beside the configuration says."""

from __future__ import annotations

import time
from pathlib import Path

from streamdp.daemon.runtime import SystemClock

SHIFT = "shift"
"""The file; without it the clock is right."""


def _shifted(self: SystemClock) -> int:
    """POSIX time as the shifted clock shows it."""
    try:
        return int(time.time()) + int(Path(SHIFT).read_text() or 0)
    except FileNotFoundError:
        return int(time.time())


if __name__ == "__main__":
    from streamdp.cli import main

    SystemClock.now = _shifted  # type: ignore[method-assign]
    main()
