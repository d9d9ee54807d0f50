"""Settings of all tests."""

import os
from pathlib import Path

import pytest


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Workers of `-n auto`: three for two cores, as tests wait for children, servers and disks."""
    return max(2, (os.cpu_count() or 1) * 3 // 2)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Look for doctests in `streamdp` alone: no worker imports all benchmarks and sweeps."""
    helper = collection_path.suffix == ".py" and not collection_path.name.startswith("test_")
    return True if helper and Path(__file__).parent in collection_path.parents else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the questions to Spark: one worker gets them all, and alone starts a Spark."""
    items.sort(key=lambda item: "spark" not in item.nodeid.lower())
