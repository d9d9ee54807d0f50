"use strict";
// Says the values under the pointer, and zooms by the address. Without this file the page still works.
(() => {
  const place = document.getElementById("charts"), tip = document.getElementById("tip");
  if (!place || !tip) return;
  const SVG = "http://www.w3.org/2000/svg", MOST = 14;
  const pictures = [...place.querySelectorAll(".picture")];
  let data = null, asked = null, start = null;

  function load() {
    const query = new URLSearchParams(location.search);
    for (const name of ["before", "sort", "find", "series"]) query.delete(name);
    for (const name of [...query.keys()]) if (!query.get(name)) query.delete(name);
    asked = asked || fetch("/api/v1/jobs/" + encodeURIComponent(place.dataset.job) + "/series?" + query)
      .then((answer) => answer.ok ? answer.json() : null).then((found) => { data = found; });
    return asked;
  }

  const number = (value) => value === null || value === undefined ? "–" : value.toLocaleString("en", { maximumSignificantDigits: 5 });

  // Of a drawn chart: its pixels a pixel of the screen, and the place under the pointer.
  function under(svg, event) {
    const box = svg.getBoundingClientRect(), [low, high, from, to] = svg.dataset.x.split(" ").map(Number);
    const ratio = svg.viewBox.baseVal.width / box.width, x = (event.clientX - box.left) * ratio;
    return { x: Math.min(Math.max(x, from), to), y: (event.clientY - box.top) * ratio, at: low + (Math.min(Math.max(x, from), to) - from) / (to - from) * (high - low),
      pixel: (place) => from + (place - low) / (high - low) * (to - from) };
  }

  function nearest(at) {
    let best = 0;
    data.times.forEach((time, index) => { if (Math.abs(time - at) < Math.abs(data.times[best] - at)) best = index; });
    return best;
  }

  function part(svg, name, attributes) {
    let found = svg.querySelector("." + name);
    if (!found) {
      found = document.createElementNS(SVG, "rect");
      found.setAttribute("class", name);
      svg.append(found);
    }
    for (const [key, value] of Object.entries(attributes)) found.setAttribute(key, value);
  }

  function clear(name) {
    place.querySelectorAll("." + name).forEach((each) => each.remove());
  }

  function say(picture, svg, index, y) {
    const best = (each) => each.estimate || each.value;
    let shown = picture.dataset.series.trim().split(" ").filter(Boolean).map((at) => data.series[+at]).filter(Boolean);
    if (svg.dataset.rows) {
      const [top, high] = svg.dataset.rows.split(" ").map(Number);
      shown = shown.slice(Math.max(Math.floor((y - top) / high), 0)).slice(0, 1);
    }
    tip.replaceChildren();
    const batch = document.createElement("b");
    batch.textContent = data.batches[index];
    tip.append(batch);
    for (const each of shown.slice(0, MOST)) {
      const line = best(each), name = document.createElement("span"), value = document.createElement("b");
      name.textContent = " · " + each.called + " ";
      value.textContent = number(line.values[index]);
      tip.append(name, value);
      if (line.lower && line.upper && line.lower[index] !== null) tip.append(" (" + number(line.lower[index]) + " to " + number(line.upper[index]) + ")");
      if (each.flags[index]) tip.append(" " + each.flags[index]);
    }
    tip.hidden = false;
    const box = svg.getBoundingClientRect();
    tip.style.setProperty("top", Math.max(box.top + scrollY - tip.offsetHeight - 6, scrollY + 4) + "px");
    tip.style.setProperty("left", Math.min(Math.max(box.left, 8), Math.max(innerWidth - tip.offsetWidth - 8, 8)) + "px");
  }

  function show(picture, svg, index, y) {
    clear("cursor");
    const [low, high, from, to] = svg.dataset.x.split(" ").map(Number);
    const x = from + (data.times[index] - low) / (high - low) * (to - from);
    part(svg, "cursor", { x: x - 0.5, y: 0, width: 1, height: svg.viewBox.baseVal.height - 28 });
    svg.dataset.at = index;
    say(picture, svg, index, y);
  }

  function hide() {
    tip.hidden = true;
    clear("cursor");
  }

  const day = (seconds) => new Date(seconds * 1e3).toISOString().slice(0, 16) + "Z";

  // Zoom: the stretch is in the address, so that it can be linked, and the table shows the same.
  function zoom(low, high) {
    const query = new URLSearchParams(location.search);
    for (const name of ["before", "last", "since", "until"]) query.delete(name);
    if (low !== null) {
      query.set("since", day(low));
      query.set("until", day(high));
    }
    location.assign(location.pathname + "?" + query + "#series-heading");
  }

  for (const picture of pictures) for (const svg of picture.querySelectorAll("svg[data-x]")) {
    svg.setAttribute("tabindex", "0");
    svg.addEventListener("pointermove", async (event) => {
      await load();
      if (!data || !data.times.length) return;
      const here = under(svg, event);
      if (start && start.svg === svg) part(svg, "zoomed", { x: Math.min(start.x, here.x), y: 0, width: Math.abs(here.x - start.x), height: svg.viewBox.baseVal.height - 28 });
      show(picture, svg, nearest(here.at), here.y);
    });
    svg.addEventListener("pointerleave", () => { if (!start) hide(); });
    svg.addEventListener("pointerdown", async (event) => {
      if (event.pointerType === "touch" || event.button) return;
      event.preventDefault();
      svg.focus({ preventScroll: true });
      svg.setPointerCapture(event.pointerId);
      start = { svg: svg, ...under(svg, event) };
    });
    svg.addEventListener("pointerup", (event) => {
      const from = start;
      start = null;
      clear("zoomed");
      if (!from || !data || data.axis !== "time") return;
      const here = under(svg, event);
      if (Math.abs(here.x - from.x) < 8) return;
      const [low, high] = [Math.min(from.at, here.at), Math.max(from.at, here.at)];
      const within = data.times.filter((time) => low <= time && time <= high);
      if (within.length > 1) zoom(within[0], within[within.length - 1] + 60);
    });
    svg.addEventListener("dblclick", () => zoom(null, null));
    svg.addEventListener("keydown", async (event) => {
      if (event.key === "Escape") return hide();
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      await load();
      if (!data || !data.times.length) return;
      const at = svg.dataset.at === undefined ? data.times.length - 1 : +svg.dataset.at + step;
      tip.setAttribute("aria-live", "polite");
      show(picture, svg, Math.min(Math.max(at, 0), data.times.length - 1), 0);
    });
    svg.addEventListener("blur", hide);
  }
  document.querySelectorAll(".zoom").forEach((each) => each.removeAttribute("hidden"));
  place.dataset.ready = "true";
})();
