"""The system's clock."""

from __future__ import annotations

import time


class SystemClock:
    """POSIX time in whole seconds."""

    def now(self) -> int:
        """POSIX time in whole seconds."""
        return int(time.time())

    def timer(self) -> float:
        """Seconds of a monotonic clock."""
        return time.monotonic()

    def wait(self, seconds: float) -> None:
        """Sleep for so many seconds."""
        time.sleep(max(seconds, 0.0))
