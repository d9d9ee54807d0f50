"""The layers hold: imports run downwards, adapters know no adapter, pure code stays pure."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

from streamdp.kinds.spec import OWN

ROOT = Path(__file__).parent.parent / "streamdp"

BELOW = {
    "types": {"errors"},
    "errors": set(),
    "database": set(),
    "disk": set(),
    "files": {"types", "objects"},
    "objects": {"types", "errors"},
    "lakes": {"types", "errors", "files"},
    "text": {"errors"},
    "registry": {"errors"},
    "zones": set(),
    "version": set(),
    "sections": {"types", "errors", "text", "zones", "disk", "privacy"},
    "privacy": {"types", "errors"},
    "priors": {"types", "errors", "privacy"},
    "mechanisms": {"types", "errors", "privacy", "priors"},
    "learning": {"types", "errors", "privacy", "priors", "mechanisms"},
    "kinds": {
        *("types", "errors", "privacy", "priors", "mechanisms", "learning", "sections"),
        *("registry", "files", "gates"),
    },
    "gates": {
        *("types", "errors", "privacy", "priors", "mechanisms", "sections", "registry", "kinds"),
    },
    "answers": {"types", "errors", "privacy", "mechanisms", "zones"},
    "simulation": {
        *("types", "errors", "privacy", "priors", "mechanisms", "learning", "kinds", "gates"),
        "engine",
    },
    "backends": {
        *(
            "types",
            "errors",
            "files",
            "objects",
            "lakes",
            "zones",
            "sections",
            "registry",
            "extras",
        ),
    },
    "sources": {
        *("types", "errors", "files", "objects", "lakes", "zones", "sections", "backends"),
    },
    "sinks": {
        *("types", "errors", "database", "disk", "privacy", "text", "objects", "sections"),
        "registry",
    },
    "store": {"types", "errors", "database", "disk", "privacy", "sections", "objects", "version"},
    "log": {"types", "errors", "disk", "text", "sections"},
    "engine": {"types", "errors", "text", "answers", "store"},
    "config": {
        *("disk", "types", "errors", "privacy", "files", "objects", "sections", "kinds", "gates"),
        *("sinks", "sources", "store", "log", "text"),
    },
    "reports": {
        *(
            "types",
            "errors",
            "database",
            "privacy",
            "store",
            "config",
            "sections",
            "files",
            "objects",
        ),
        *("zones", "text", "sources", "answers", "version"),
    },
    "web": {
        "database",
        "text",
        "types",
        "errors",
        "privacy",
        "store",
        "config",
        "sections",
        "reports",
        "sinks",
        "log",
        "version",
    },
    "demo": set(),
    "library": {
        *(
            "types",
            "errors",
            "text",
            "privacy",
            "store",
            "sinks",
            "engine",
            "config",
            "sections",
            "wiring",
        ),
        *("database", "reports", "answers", "backends", "kinds"),
    },
}
"""What each room may import; rooms that are not listed here stand above all of these."""

PURE = ("privacy", "priors", "mechanisms", "learning", "kinds", "gates", "answers")
IMPURE_MODULES = {"time", "logging", "random", "sqlite3", "duckdb", "socket", "subprocess"}
ABOVE = {"wiring", "planning", "daemon", "cli", "__main__", "__init__"}

MODULES = sorted(ROOT.rglob("*.py"))


def room(path: Path) -> str:
    first = path.relative_to(ROOT).parts[0]
    return first.removesuffix(".py")


def is_study(path: Path) -> bool:
    """Part of what a kind brings for simulations, which nothing else may load."""
    return room(path) == "kinds" and path.stem in ("study", "synthetic")


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a module; most tests here look at each module."""
    return tuple(ast.walk(ast.parse(path.read_text())))


@cache
def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def rooms_imported(path: Path) -> set[str]:
    parts = [name.split(".") for name in imports(path) if name.split(".")[0] == "streamdp"]
    names = {part[1] for part in parts if len(part) > 1}
    return {name for name in names if (ROOT / name).exists() or (ROOT / f"{name}.py").exists()}


def test_imports_run_downwards() -> None:
    """A room imports itself and what the table allows, nothing else."""
    rooms = {path: room(path) for path in MODULES if room(path) not in ABOVE}
    assert set(rooms.values()) <= BELOW.keys(), "a new room needs a place in the table"
    assert [
        path for path, here in rooms.items() if rooms_imported(path) - BELOW[here] - {here}
    ] == []


def test_pure_rooms_have_no_clock_file_log_or_generator() -> None:
    """Below the line nothing reads time, files or a user-space random generator."""
    for path in (path for path in MODULES if room(path) in PURE):
        used = {name.split(".")[0] for name in imports(path)}
        assert not used & IMPURE_MODULES, path
        text = path.read_text()
        assert not [word for word in ("open(", "read_text(", "write_text(") if word in text], path


def test_production_code_has_no_random_generator() -> None:
    """Chance comes from the operating system; a generator would have a state to copy.

    Simulations alone are repeatable, and release nothing.
    """
    for path in (path for path in MODULES if room(path) != "simulation" and not is_study(path)):
        assert "np.random" not in path.read_text(), path
        assert not {"random", "numpy.random"} & imports(path), path


def test_learning_never_sees_a_statistic() -> None:
    """Nothing in the learning room can name cell counts: learning is post-processing."""
    for path in (ROOT / "learning").rglob("*.py"):
        assert "CellCounts" not in path.read_text(), path
        assert "grains" not in {name.split(".")[-1] for name in imports(path)}, path


SIMULATES = {"streamdp/cli/simulate.py", "streamdp/planning/comparison.py"}
"""The only modules outside of the room that may evaluate against a truth."""


def test_nothing_that_works_on_production_can_evaluate_against_truth() -> None:
    """The simulation is imported by its command alone, by nothing of engine, daemon or store."""
    users = {
        str(path.relative_to(ROOT.parent))
        for path in MODULES
        if room(path) != "simulation" and "simulation" in rooms_imported(path)
    }
    assert users == SIMULATES


def test_the_daemon_loads_no_simulation() -> None:
    """Not by a detour either: all that works on production, imported, leaves it out, and pandas."""
    rooms = (
        "daemon.daemon",
        "daemon.runtime",
        "engine.runner",
        "wiring",
        "store.sqlite",
        "cli.run",
    )
    code = f"import sys, {', '.join(f'streamdp.{name}' for name in rooms)}\n"
    code += "from streamdp.kinds.spec import KINDS; list(KINDS.all())\n"
    code += "loaded = [name for name in sys.modules if name.startswith('streamdp.')]\n"
    code += "assert not [name for name in loaded if 'simulation.' in name or 'synthetic' in name]\n"
    code += "assert 'pandas' not in sys.modules"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_one_module_imports_sqlite_utils() -> None:
    """Elsewhere it would import pandas too, where that is installed."""
    users = {str(path.relative_to(ROOT)) for path in MODULES if "sqlite_utils.db" in imports(path)}
    assert users == {"database.py"}
    assert not [path for path in MODULES if "sqlite_utils" in imports(path)]


ASK_SQL = {"store", "backends", "sinks", "lakes"}
"""Rooms with SQL of their own; all others call a function that says what it reads."""


def test_no_other_room_asks_the_store_in_sql() -> None:
    """So what a change of the schema touches stands in `store`."""
    for path in (path for path in MODULES if room(path) not in ASK_SQL):
        called = (node.func for node in nodes(path) if isinstance(node, ast.Call))
        asked = {
            ast.unparse(call)
            for call in called
            if isinstance(call, ast.Attribute) and call.attr in ("execute", "executemany", "query")
        }
        assert not [name for name in asked if "database" in name], path


KNOW_KINDS = {"kinds", "gates", "learning", "mechanisms", "priors", "privacy", "demo"}
"""Rooms that may know a kind's name: the kinds, tests of gates that say which they read, and what
kinds are made of."""


def names_in(path: Path) -> set[str]:
    """Texts and attributes of a module, and the kinds it imports something of.

    The attribute `keys`, which every mapping has, is no name of a kind.
    """
    found: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
        elif isinstance(node, ast.Attribute) and node.attr != "keys":
            found.add(node.attr)
    modules = [name.split(".") for name in imports(path)]
    return found | {name[2] for name in modules if name[:2] == ["streamdp", "kinds"] and name[2:]}


def test_no_other_room_knows_the_name_of_a_kind() -> None:
    """What is done to releases follows from their section, columns, accuracy and study."""
    for path in (path for path in MODULES if room(path) not in KNOW_KINDS):
        assert not names_in(path) & set(OWN), path
