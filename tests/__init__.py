"""Tests and benchmarks."""

from streamdp.cli import compute_on_one_thread

compute_on_one_thread()  # as commands do, before numpy is loaded
