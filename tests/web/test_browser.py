"""The page in a real Chromium: it draws, is walked by keyboard, and shows no error.

Skipped, with the reason, where Chromium or the package that drives it is not installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.web.chromium import CHROMIUM, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Dialog, Page

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium: apt-get install chromium"),
]

PATIENCE = 180_000
"""Milliseconds."""

PATHS = (
    *("/", "/jobs/daily?last=all", "/jobs/parts?last=all", "/budget", "/statement"),
    *("/log?level=debug", "/verification", "/jobs/daily/sheet", "/jobs/daily/learned", "/nothing"),
)


@pytest.fixture(scope="module")
def address(home: Path) -> Iterator[str]:
    with serving(home) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def _context(browser: Browser, **options: Any) -> BrowserContext:
    """A window that is patient: first looks load much, and machines may be busy."""
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE)
    return context


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page whose errors and console are kept."""
    context = _context(browser, viewport={"width": 1280, "height": 860})
    page = context.new_page()
    yield page
    context.close()


def _said(page: Page) -> list[str]:
    """What the console says from now on; refusals of the policy are said there too."""
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    return said


CHART = "#charts svg[data-x]:visible"


def test_every_page_loads_in_silence(page: Page, address: str) -> None:
    """No console message, no error, no request to elsewhere, nothing wider than the window."""
    said, asked = _said(page), []
    page.on("request", lambda request: asked.append(request.url))
    for path in PATHS:
        page.goto(address + path, wait_until="networkidle")
        assert page.locator("h1").count() == 1, path
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
    assert [text for text in said if "404" not in text] == []
    assert all(url.startswith(address) for url in asked)


def test_charts_say_values_and_zoom(page: Page, address: str) -> None:
    """The pointer brings the numbers of a batch; a drag puts a stretch into the address."""
    page.goto(f"{address}/jobs/daily?last=all")
    page.wait_for_selector("#charts[data-ready]")
    over = page.locator(CHART).first.bounding_box()
    assert over is not None
    page.mouse.move(over["x"] + over["width"] / 3, over["y"] + 50)
    page.wait_for_selector("#tip:visible")
    assert "2023" in page.locator("#tip").inner_text()
    page.mouse.move(over["x"] + 20, over["y"] + 50)
    page.mouse.down()
    page.mouse.move(over["x"] + over["width"] - 5, over["y"] + 60, steps=4)
    page.mouse.up()
    page.wait_for_url("**since=2023**")
    page.wait_for_selector("#charts[data-ready]")
    page.locator(CHART).first.dblclick()
    page.wait_for_url(lambda url: "since" not in url)


def test_values_are_walked_by_keyboard(page: Page, address: str) -> None:
    """Arrows go from batch to batch of the chart that has the focus."""
    page.goto(f"{address}/jobs/daily?last=all")
    page.wait_for_selector("#charts[data-ready]")
    page.locator(CHART).first.focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector("#tip:visible")
    last = page.locator("#tip").inner_text()
    page.keyboard.press("ArrowLeft")
    page.wait_for_function(f"document.getElementById('tip').innerText !== {last!r}")


def test_the_page_is_walked_by_keyboard(page: Page, address: str) -> None:
    """Tab reaches a skip link first and then every link in order, each with a ring one sees."""
    page.goto(f"{address}/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.goto(f"{address}/")
    reached = []
    for _ in range(40):
        page.keyboard.press("Tab")
        here = "document.activeElement"
        if page.evaluate(f"{here} === document.body"):
            break
        reached.append(page.evaluate(f"{here}.getAttribute('href')"))
        assert page.evaluate(f"getComputedStyle({here}).outlineStyle") != "none"
    wanted = page.evaluate("[...document.querySelectorAll('a')].map(a => a.getAttribute('href'))")
    assert set(wanted) <= set(reached)
    page.goto(f"{address}/")
    page.get_by_role("link", name="Budget").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/budget")


@pytest.mark.parametrize("path", ["/", "/jobs/daily?last=all"])
def test_dark_is_dark(browser: Browser, address: str, path: str) -> None:
    """Whoever wants it dark has it dark, and the ink light."""
    context = _context(browser, color_scheme="dark")
    page = context.new_page()
    page.goto(address + path)
    light = "c => getComputedStyle(document.body)[c].match(/\\d+/g).slice(0, 3).map(Number)"
    assert sum(page.evaluate(light, "backgroundColor")) < 120
    assert sum(page.evaluate(light, "color")) > 600
    context.close()


def test_a_phone_has_it_all(browser: Browser, address: str) -> None:
    """Nothing sticks out of a narrow screen; wide tables scroll by themselves."""
    context = _context(browser, viewport={"width": 360, "height": 740}, is_mobile=True)
    page = context.new_page()
    for path in PATHS:
        page.goto(address + path)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 360, path
    context.close()


def test_without_scripts_there_is_a_picture(browser: Browser, address: str) -> None:
    """Every page works; the series are drawn, chosen and paged by links and forms."""
    context = _context(browser, java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}/jobs/daily?last=all")
    assert page.locator("#charts svg path.line >> visible=true").first.is_visible()
    page.get_by_role("button", name="Show").click()
    assert page.locator("#charts svg path.line >> visible=true").first.is_visible()
    context.close()


def test_hostile_names_run_nothing(page: Page, address: str) -> None:
    """Batches and groups that would be scripts are text: no dialog, no element of theirs."""
    opened: list[Any] = []

    def note(dialog: Dialog) -> None:
        opened.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", note)
    said = _said(page)
    for path in ("/jobs/parts?last=all", "/log?level=debug", "/budget"):
        page.goto(address + path, wait_until="networkidle")
        assert page.locator('img[src="x"], [onerror], [onload]').count() == 0
    assert (opened, said) == ([], [])


@pytest.mark.thinned(6)
@pytest.mark.parametrize("paths", [PATHS[turn::3] for turn in range(3)])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessibility_has_no_serious_finding(
    browser: Browser, address: str, scheme: Any, paths: tuple[str, ...]
) -> None:
    """By axe-core: nothing serious or critical on any page, in light and in dark."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is missing")
    context = _context(browser, color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    found = []
    page.goto(f"{address}/")
    page.evaluate("document.querySelector('main').append(document.createElement('input'))")
    assert "label" in [each["id"] for each in axe.Axe().run(page).response["violations"]]
    for path in paths:
        page.goto(address + path, wait_until="networkidle")
        for violation in axe.Axe().run(page).response["violations"]:
            if violation["impact"] in ("serious", "critical"):
                nodes = [node["html"][:120] for node in violation["nodes"][:3]]
                found.append((path, violation["id"], nodes))
    context.close()
    assert found == []
