"""Settings of all tests."""

import os

import pytest


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Workers of `-n auto`: three for two cores, as tests wait for children, servers and disks."""
    return max(2, (os.cpu_count() or 1) * 3 // 2)
