"""Settings of all tests."""

import os
import zlib
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.chance import settled

QUICK = (
    *("types/", "config/", "priors/", "log/", "privacy/accounting/", "privacy/noise/"),
    "privacy/quantiles/test_enumeration.py",
    *(f"store/test_{name}.py" for name in ("ledger", "archive", "anchor", "runs", "delta")),
    *(f"store/test_{name}.py" for name in ("rho_caps", "views", "release_rows", "upgrade")),
    *(f"engine/test_{name}.py" for name in ("release", "deliver", "gate", "turns", "restarts")),
    "cli/test_commands.py::test_plan_says_what_run_then_spends",
    "cli/test_commands.py::test_releases_in_every_form",
    "test_architecture.py",
)
"""What `pytest -m quick` runs, below this folder: costs and draws enumerated, the ledger, the order
of a release, the configuration, one run from end to end. Without Spark, long profiles and the
widest enumeration."""

SPARK = 3
"""One of so many questions to Spark is in the short profile: each takes about a second."""

HERE = Path(__file__).parent


# All properties with more examples: pytest --hypothesis-profile=long. Neither a deadline nor a rate
# is asked for: processors vary. The short profile tries the same examples in every run, so that it
# fails for everyone or for nobody; the long one looks for others.
HASTE = (HealthCheck.too_slow,)
settings.register_profile(
    "short", max_examples=25, deadline=None, derandomize=True, suppress_health_check=HASTE
)
settings.register_profile("long", max_examples=400, deadline=None, suppress_health_check=HASTE)
settings.load_profile("short")  # before the plugin of hypothesis loads what it is asked for


def pytest_configure(config: pytest.Config) -> None:
    """Settle chance, try more examples in the long profile, look for quick tests where they are."""
    settled.settle()
    if config.option.markexpr == "long":
        settings.load_profile("long")
    whole = config.args_source == pytest.Config.ArgsSource.TESTPATHS
    if whole and config.option.markexpr == "quick":
        config.args[:] = [str(HERE / each) for each in QUICK]


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> None:
    """Draw by the name of a fixture while it is made, whichever test asks for it first."""
    case = getattr(request, "param_index", 0)
    settled.begin(f"{request.node.nodeid}/{fixturedef.argname}/{case}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Draw by the name of a test while it runs."""
    settled.begin(item.nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Workers of `-n auto`: three for two cores, as tests wait for children, servers and disks."""
    return max(2, (os.cpu_count() or 1) * 3 // 2)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Look for doctests in `streamdp` alone: no worker imports all benchmarks and sweeps."""
    helper = collection_path.suffix == ".py" and not collection_path.name.startswith("test_")
    return True if helper and HERE in collection_path.parents else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is long and what is quick.

    Which cases of a test marked `thinned` stay in the short profile is up to checksums of their
    names: they follow each other by engine or kind, and all are to have some. Questions to Spark
    begin: one worker gets them all, and alone starts a Spark.
    """
    cases = defaultdict(list)
    for item in items:
        thinned = item.get_closest_marker("thinned")
        if thinned is not None:
            cases[item.nodeid.partition("[")[0], thinned.args[0]].append(item)
        elif "spark" in item.nodeid.lower() and "/contract/" in item.nodeid:
            cases[item.nodeid.partition("::")[0], SPARK].append(item)
    for (_, part), found in cases.items():
        found.sort(key=lambda item: zlib.crc32(item.nodeid.encode()))
        for item in found[-(-len(found) // part) :]:
            item.add_marker("long")
    for item in items:
        name = item.nodeid.removeprefix(f"{HERE.name}/")
        slow = "spark" in name.lower() or "K=4" in name or item.get_closest_marker("long")
        if name.startswith(QUICK) and not slow:
            item.add_marker("quick")
    items.sort(key=lambda item: "spark" not in item.nodeid.lower())
