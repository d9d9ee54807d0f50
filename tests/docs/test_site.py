"""The site is built without a warning, and its reference follows from the code."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from streamdp.cli import COMMANDS
from streamdp.config import json_schema
from streamdp.log import EVENTS
from tests.docs.blocks import DOCS, GENERATED


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("sphinx", reason="pip install '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    strict = ["--fail-on-warning", "--nitpicky", "--quiet", "-d", str(folder / "trees")]
    command = [sys.executable, "-m", "sphinx", *strict, str(DOCS), str(folder / "html")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    assert ended.returncode == 0, ended.stderr
    assert not ended.stderr
    return folder / "html"


def test_links_and_anchors_of_the_site_lead_somewhere(site: Path) -> None:
    """Every relative link of every page is a file, and its anchor is on that page."""
    wrong = []
    texts = {path: path.read_text() for path in site.rglob("*.html")}
    for path, text in texts.items():
        if path.name in ("search.html", "genindex.html"):
            continue
        for link in re.findall(r'(?:href|src)="([^"]+)"', text):
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = link.partition("#")
            target = (path.parent / name.partition("?")[0]).resolve() if name else path
            if not target.exists() or (
                anchor and target in texts and f'id="{anchor}"' not in texts[target]
            ):
                wrong.append((path.name, link))
    assert not wrong


def test_the_site_fetches_nothing(site: Path) -> None:
    """No script, style, font or picture from elsewhere."""
    for path in site.rglob("*.html"):
        text = path.read_text()
        assert not re.findall(r'<(?:script|img|link)[^>]+(?:src|href)="https?://', text), path


def test_the_reference_is_whole() -> None:
    """Every section and key, command, event, and every metric's family has its line."""
    pages = reference().pages()
    assert set(pages) == set(GENERATED)
    for name in COMMANDS:
        assert f"\n## {name}\n" in pages["commands.md"]
    for event in EVENTS:
        assert f"| `{event}` |" in pages["events.md"]
    for key in keys(json_schema()):
        assert f"`{key}`" in pages["configuration.md"]
    assert "| `streamdp_epsilon_spent_total` | counter | `scope` |" in pages["metrics.md"]
    assert "| 3 | a cap is reached |" in pages["exit-codes.md"]


def keys(schema: dict[str, Any]) -> set[str]:
    sections = [schema, *schema["$defs"].values()]
    return {key for section in sections for key in section.get("properties", {})}


def reference() -> Any:
    spec = importlib.util.spec_from_file_location("reference", DOCS / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_pictures_are_those_their_script_draws() -> None:
    """`python deploy/docs/pictures/draw.py` was run after it was changed."""
    spec = importlib.util.spec_from_file_location("draw", DOCS / "pictures" / "draw.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    for name in ("release", "law", "mixture"):
        assert (DOCS / "pictures" / f"{name}.svg").read_text() == getattr(module, name)()
