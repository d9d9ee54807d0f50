"""Tests and benchmarks."""

import os

from streamdp.cli import ONE_THREAD

# As in the commands: threads that wait for each other's small matrices take four times as long.
for _variable in ONE_THREAD:
    os.environ.setdefault(_variable, "1")
