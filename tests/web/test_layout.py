"""How pages lie on a desk, a tablet and a phone: no text over another, nothing cut off, readable.

A small installation of its own has groups, a workload of several tables, and a table of many
columns. Skipped where Chromium or the package that drives it is not installed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import pytest
from click.testing import CliRunner

from streamdp.cli import cli
from tests.crash.home import Home
from tests.web.chromium import CHROMIUM, serving
from tests.web.layout import faults

if TYPE_CHECKING:
    from playwright.sync_api import Page

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium: apt-get install chromium"),
]

WIDTHS = (1280, 768, 390)

CONFIG = """
store: {path: store.db}
privacy: {unit: flight, caps: {batch: 4, lifetime: 40}}
sources:
  flights:
    path: flights.csv
    types: {at: timestamp, airport: text, carrier: text, minutes: number}
    batches: {column: at, every: 1d, start: 2023-10-29, end: 2023-11-07}
releases:
  minutes:
    {kind: quantiles, source: flights, column: minutes, quantiles: deciles, resolution: 1,
     bounds: [0, 1000], guess: {location: 150, scale: 60}, expected_rows: 200, epsilon: 1,
     rollups: [rolling 3d, week]}
  airports:
    {kind: quantiles, source: flights, column: minutes, quantiles: [0.1, 0.25, 0.5, 0.75, 0.9],
     resolution: 1, bounds: [0, 1000], by: airport, groups: [AAA, BBB, CCC, DDD], epsilon: 1}
  traffic:
    {kind: workload, source: flights, marginals: 2, expected_rows: 200, epsilon: 1,
     dimensions: {airport: {values: [AAA, BBB, CCC, DDD]},
                  carrier: {values: [first carrier, second, third, fourth, fifth, sixth]}}}
log: {path: streamdp.log}
"""

PAGES = (
    *(
        "/",
        "/jobs/minutes",
        "/jobs/minutes?per=rolling+3d",
        "/jobs/airports",
        "/jobs/traffic?part=airport%2C+carrier",
    ),
    *("/statement", "/budget", "/log"),
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of nine days of flights."""
    folder = tmp_path_factory.mktemp("layout")
    chance = np.random.default_rng(5)
    carriers = ("first carrier", "second", "third", "fourth", "fifth", "sixth")
    rows = ["at,airport,carrier,minutes"]
    for day in ("10-29", "10-30", "10-31", *(f"11-0{day}" for day in range(1, 7))):
        for airport, carrier in zip(
            chance.choice(["AAA", "BBB", "CCC", "DDD"], 200),
            chance.choice(carriers, 200),
            strict=True,
        ):
            rows.append(f"2023-{day}T12:00:00,{airport},{carrier},{chance.integers(40, 300)}")
    (folder / "flights.csv").write_text("\n".join([*rows, ""]))
    (folder / "config.yaml").write_text(CONFIG)
    made = Home(folder, engine=True)
    made.live()
    return made.store


@pytest.fixture(scope="module")
def address(store: Path) -> Iterator[str]:
    """A page over it."""
    with serving(store.parent) as address:
        yield address


@pytest.fixture(scope="module")
def reports(store: Path) -> list[str]:
    """Addresses of reports of groups and of tables, as files."""
    found = []
    for job in ("airports", "traffic"):
        file = store.with_name(f"{job}.html")
        words = ["report", job, "--period", "week", "-c", str(store.with_name("config.yaml"))]
        result = CliRunner().invoke(cli, [*words, "-o", str(file)], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        found.append(file.as_uri())
    return found


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        with closing(browser):
            page = browser.new_context(bypass_csp=True, reduced_motion="reduce").new_page()
            page.set_default_timeout(60_000)
            yield page


@pytest.mark.thinned(8)
@pytest.mark.parametrize("turn", range(8))
def test_pages_lie_well_and_are_readable(
    page: Page, address: str, reports: list[str], turn: int
) -> None:
    """At three widths no fault of layout; by turns, light and dark, nothing serious by axe-core."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is missing")
    found: list[object] = []
    schemes: tuple[tuple[int, Literal["light", "dark"]], ...] = ((1280, "light"), (390, "dark"))
    for number, path in enumerate((*PAGES, *reports)):
        answer = page.goto(path if path in reports else address + path)
        assert answer is not None
        assert answer.ok, path
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            found += [(path, width, fault) for fault in faults(page)]
        if (number + turn) % 4:  # axe-core takes seconds a page
            continue
        width, scheme = schemes[((number + turn) // 4) % 2]
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        for violation in axe.Axe().run(page).response["violations"]:
            if violation["impact"] in ("serious", "critical"):
                nodes = [node["html"][:120] for node in violation["nodes"][:3]]
                found.append((path, scheme, violation["id"], nodes))
    assert found == []


def test_rollups_are_shown_as_they_are_kept(page: Page, address: str, store: Path) -> None:
    """The table of a step has every value of it, and no link to a release that is none."""
    page.goto(f"{address}/jobs/minutes?per=week")
    cells = page.locator("table.releases tbody td").all_inner_texts()
    shown = {round(float(text.split()[0].replace(",", ""))) for text in cells}
    with closing(sqlite3.connect(store)) as database:
        kept = database.execute(
            "SELECT value FROM v_rollups WHERE job = 'minutes' AND step = 'week' AND current"
        ).fetchall()
    assert len(cells) == len(kept) == 9
    assert shown == {round(value) for (value,) in kept}
    assert page.locator("table.releases a[href^='/releases/']").count() == 0
    page.goto(f"{address}/jobs/airports")
    assert page.locator("a[href*='per=']").count() == 0


SPOILT = {
    "over each other": "const t = document.querySelectorAll('#charts svg text.tick');"
    " const last = [...t].filter(each => each.checkVisibility()).slice(-2);"
    " last[1].setAttribute('x', last[0].getAttribute('x'))",
    "outside of its chart": "[...document.querySelectorAll('#charts svg text.tick')]"
    ".find(each => each.checkVisibility()).setAttribute('x', -20)",
    "sticks out": "document.querySelector('.panels').style.width = '2000px'",
    "cut off": "const h = document.querySelector('.headline');"
    " h.style.cssText = 'width: 30px; white-space: nowrap; overflow: hidden'",
    "scrolls without a sign": "for (const each of document.querySelectorAll('.scroll'))"
    " each.style.cssText = 'animation: none'",
    "scrolls few columns": "const few = document.querySelector('.scroll.dated');"
    " few.classList.add('fits'); few.querySelector('td').style.cssText = 'min-width: 900px'",
    "scrolls the names": "for (const each of document.querySelectorAll('.scroll th'))"
    " each.style.position = 'static'",
}


def test_each_fault_is_seen(page: Page, address: str) -> None:
    """A page that is spoilt in one way has that fault."""
    page.set_viewport_size({"width": 390, "height": 900})
    for fault, spoil in SPOILT.items():
        page.goto(f"{address}/jobs/minutes")
        page.evaluate(f"() => {{ {spoil} }}")
        assert any(each.startswith(fault) for each in faults(page)), fault


def test_a_pointer_brings_the_numbers_of_each_small_chart(page: Page, address: str) -> None:
    """A chart of one group says the values of that group."""
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"{address}/jobs/airports")
    page.wait_for_selector("#charts[data-ready]")
    charts = page.locator("#charts svg[data-x]:visible")
    assert charts.count() == 4
    for at, group in enumerate(("AAA", "BBB", "CCC", "DDD")):
        charts.nth(at).focus()
        page.keyboard.press("ArrowLeft")
        page.wait_for_function(f"document.getElementById('tip').innerText.includes('{group} ·')")
        assert page.locator("#tip").inner_text().count(group) == 5
