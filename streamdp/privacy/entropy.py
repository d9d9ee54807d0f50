"""The operating system's entropy: the only source of chance in production.

There is no user-space generator, hence no state to copy by a fork or a resumed snapshot, and no
seed that could be stored: a seed is the noise.
"""

from __future__ import annotations

import os


class OperatingSystemEntropy:
    """Random bits from the kernel; raises OSError if it has none to give."""

    def bits(self, count: int) -> int:
        """A uniform integer in [0, 2**count)."""
        size = (count + 7) // 8
        return int.from_bytes(os.urandom(size), "big") >> (8 * size - count)
