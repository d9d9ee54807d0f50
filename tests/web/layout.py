"""What is wrong with how a page lies: texts over each other, and what is cut off or sticks out."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

FAULTS = """async () => {
  // What follows from scrolling is known a frame after a change of size.
  for (let frame = 0; frame < 2; frame++) await new Promise(requestAnimationFrame);
  const found = [], width = document.documentElement.clientWidth;
  const named = (each) => each.tagName.toLowerCase() + "." + (each.getAttribute("class") || "")
    + " " + (each.textContent || "").trim().replace(/\\s+/g, " ").slice(0, 40);
  const unseen = (each) => each.closest(".hidden, .skip, title") || !each.checkVisibility();
  const meet = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3;

  // Texts as they are drawn: a box for each line of each.
  const boxes = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const of = node.parentElement;
    if (!node.data.trim() || unseen(of)) continue;
    const around = document.createRange();
    around.selectNodeContents(node);
    const chart = of.closest("svg");
    for (const box of chart ? [of.getBoundingClientRect()] : around.getClientRects())
      boxes.push({ of, chart, box });
  }
  for (const { of, chart, box } of boxes) {
    if (!chart) continue;
    const around = chart.getBoundingClientRect();
    if (box.left < around.left - 1 || box.right > around.right + 1
      || box.top < around.top - 1 || box.bottom > around.bottom + 1)
      found.push("outside of its chart: " + named(of));
  }
  const clipped = (each) => {
    const { left, right, top, bottom } = each.box, cut = { left, right, top, bottom };
    for (let up = each.of; up; up = up.parentElement) {
      if (getComputedStyle(up).overflowX === "visible") continue;
      const edge = up.getBoundingClientRect();
      cut.left = Math.max(cut.left, edge.left); cut.right = Math.min(cut.right, edge.right);
      cut.top = Math.max(cut.top, edge.top); cut.bottom = Math.min(cut.bottom, edge.bottom);
    }
    return cut;
  };
  const drawn = boxes.map((each) => ({ ...each, box: each.chart ? each.box : clipped(each) }))
    .filter(({ box }) => box.right > box.left && box.bottom > box.top)
    .sort((a, b) => a.box.top - b.box.top);
  drawn.forEach((one, at) => {
    for (let next = at + 1; next < drawn.length && drawn[next].box.top < one.box.bottom; next++)
      if (one.of !== drawn[next].of && meet(one.box, drawn[next].box))
        found.push("over each other: " + named(one.of) + " / " + named(drawn[next].of));
  });

  for (const each of document.body.querySelectorAll("*")) {
    if (unseen(each) || each.ownerSVGElement) continue;
    const style = getComputedStyle(each);
    const more = each.scrollWidth - each.clientWidth > 1 && each.clientWidth > 0;
    if (more && ["hidden", "clip"].includes(style.overflowX) && each.tagName !== "svg")
      found.push("cut off: " + named(each));
    if (more && each.classList.contains("fits")) found.push("scrolls few columns: " + named(each));
    if (more && ["auto", "scroll"].includes(style.overflowX)) {
      const first = each.querySelector("tbody tr > :first-child");
      if (each.tabIndex < 0) found.push("scrolls, but not by keyboard: " + named(each));
      if (style.maskImage === "none") found.push("scrolls without a sign: " + named(each));
      if (!first || getComputedStyle(first).position !== "sticky")
        found.push("scrolls the names of its rows away: " + named(each));
    }
    const box = each.getBoundingClientRect();
    const held = each.parentElement.closest(".scroll");
    if (!held && box.width && (box.right > width + 1 || box.left < -1))
      found.push("sticks out: " + named(each));
  }
  return [...new Set(found)];
}"""


def faults(page: Page) -> list[str]:
    """Every fault of the page that is shown, in words."""
    return list(page.evaluate(FAULTS))
