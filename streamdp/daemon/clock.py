"""The system's clock."""

from __future__ import annotations

import time


class SystemClock:
    """POSIX time in whole seconds."""

    def now(self) -> int:
        """Now."""
        return int(time.time())
