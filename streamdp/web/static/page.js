"use strict";
// Puts a chart that zooms in the place of the drawn one. Without this file the page still works.
(() => {
  const place = document.getElementById("chart");
  if (!place || typeof uPlot === "undefined") return;
  const picture = place.querySelector("svg");
  const boxes = [...document.querySelectorAll('.switches input[name="series"]')];
  const tip = document.createElement("p");
  tip.className = "tip";
  tip.setAttribute("aria-live", "off");
  let chart = null, data = null;

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const faint = (name, share) => "color-mix(in srgb, " + colour(name) + " " + share + "%, transparent)";
  const number = (value) => (value === null || value === undefined ? "–" : String(+value.toPrecision(6)));

  function marks(u) {
    const context = u.ctx, box = u.bbox, ratio = devicePixelRatio;
    context.save();
    context.beginPath();
    context.rect(box.left, box.top, box.width, box.height);
    context.clip();
    context.fillStyle = faint("soft", 16);
    if (data.axis === "time") for (const each of data.carried) {
      const from = u.valToPos(each.from, "x", true), to = u.valToPos(each.to, "x", true);
      context.fillRect(from, box.top, to - from, box.height);
    }
    const tones = { burn: "error", refuse: "warning", yes: "good" };
    if (data.axis === "time") for (const each of data.events) {
      const x = u.valToPos(each.time, "x", true), y = box.top + box.height;
      context.fillStyle = colour(tones[each.what]);
      context.beginPath();
      context.moveTo(x, y);
      context.lineTo(x - 4 * ratio, y - 8 * ratio);
      context.lineTo(x + 4 * ratio, y - 8 * ratio);
      context.fill();
    }
    context.restore();
  }

  function say(u) {
    const at = u.cursor.idx;
    tip.replaceChildren();
    if (at === null || at === undefined) {
      tip.textContent = "\u00a0";
      return;
    }
    const batch = document.createElement("b");
    batch.textContent = data.batches[at];
    tip.append(batch);
    data.series.forEach((each, index) => {
      if (!visible(index)) return;
      const best = each.estimate || each.value;
      const name = document.createElement("span");
      name.className = each.colour;
      const label = box(each.name);
      name.textContent = "  " + (label ? label.nextElementSibling.textContent : each.name) + " ";
      const value = document.createElement("b");
      value.textContent = number(best.values[at]);
      tip.append(name, value);
    });
  }

  const box = (name) => boxes.find((each) => each.value === name);
  const visible = (index) => {
    const found = box(data.series[index].name);
    return !found || found.checked;
  };

  function columns() {
    const table = [data.times], series = [{}], bands = [];
    for (const each of data.series) {
      const best = each.estimate || each.value, tone = each.colour;
      const line = { stroke: colour(tone), width: 1.8, points: { show: data.times.length < 3, size: 7 } };
      if (best.lower && best.upper) {
        bands.push({ series: [table.length + 1, table.length], fill: faint(tone, 16) });
        table.push(best.lower, best.upper);
        series.push({ stroke: "transparent", points: { show: false } });
        series.push({ stroke: "transparent", points: { show: false } });
      } else {
        table.push(null, null);
        series.push({ show: false }, { show: false });
      }
      table.push(each.estimate ? each.value.values : null);
      const size = data.times.length > 400 ? 2.2 : 3.4;
      series.push({ stroke: "transparent", points: { show: true, size: size, width: 0, fill: faint(tone, 45), stroke: "transparent" } });
      table.push(best.values);
      series.push(line);
    }
    const empty = data.times.map(() => null);
    return { table: table.map((each) => each || empty), series: series, bands: bands };
  }

  const DAY = 86400;
  const written = (seconds, options) => new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", ...options }).format(seconds * 1e3);
  function moment(seconds, step) {
    if (step < DAY && seconds % DAY) return written(seconds, { hour: "2-digit", minute: "2-digit" });
    if (step < 28 * DAY) return written(seconds, { day: "numeric", month: "short" });
    const month = new Date(seconds * 1e3).getUTCMonth();
    return month ? written(seconds, { month: "short" }) : written(seconds, { year: "numeric" });
  }

  function place_name(at) {
    const name = Number.isInteger(at) ? data.batches[at] || "" : "";
    return name.length > 14 ? name.slice(0, 13) + "…" : name;
  }

  function written_place(at, step) {
    if (data.axis === "time") return moment(at, step);
    return data.axis === "number" ? (Number.isInteger(at) ? String(at) : "") : place_name(at);
  }

  function draw() {
    const range = chart ? { min: chart.scales.x.min, max: chart.scales.x.max } : null;
    if (chart) chart.destroy();
    const made = columns();
    const axis = { stroke: colour("soft"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), width: 1 }, font: "12px system-ui, sans-serif" };
    chart = new uPlot({
      width: place.clientWidth,
      height: Math.max(Math.min(Math.round(place.clientWidth * 0.36), 400), 240),
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1e3), "Etc/UTC"),
      cursor: { y: false, points: { size: 6 }, drag: { x: true, y: false } },
      legend: { show: false },
      scales: { x: { time: data.axis === "time", ...alone() }, y: { range: reach } },
      axes: [{ ...axis, size: 34, values: (u, splits, index, space, step) => splits.map((each) => written_place(each, step)) }, { ...axis, size: 56 }],
      series: made.series,
      bands: made.bands,
      hooks: { drawClear: [marks], setCursor: [say] },
    }, made.table, place);
    data.series.forEach((each, index) => show(index, visible(index)));
    if (range) chart.setScale("x", range);
    place.dataset.drawn = "true";
    say(chart);
  }

  // A single release has no range of its own: a day to both sides of it and of what it stands for.
  function alone() {
    if (data.times.length > 1) return {};
    if (data.axis !== "time") return { range: [data.times[0] - 1, data.times[0] + 1] };
    const last = Math.max(data.times[0], ...data.carried.map((each) => each.to));
    return { range: [data.times[0] - DAY, last + DAY] };
  }

  // As Picture.reach: all lines, most of what was drawn, intervals but for ends far beyond all values.
  function reach() {
    const drawn = [], lines = [], widths = [];
    let below = Infinity, above = -Infinity;
    data.series.forEach((each, index) => {
      if (!visible(index)) return;
      const best = each.estimate || each.value;
      lines.push(...best.values);
      if (each.estimate) drawn.push(...each.value.values);
      (best.lower || []).forEach((lower, at) => {
        const upper = best.upper[at];
        if (lower === null || upper === null) return;
        widths.push(upper - lower);
        below = Math.min(below, lower);
        above = Math.max(above, upper);
      });
    });
    const there = (list) => list.filter((value) => value !== null).sort((a, b) => a - b);
    const all = there(drawn), cut = Math.floor(all.length / 100);
    const found = there(lines.concat(all.slice(cut, all.length - cut)));
    if (!found.length) return [0, 1];
    let low = found[0], high = found[found.length - 1];
    if (widths.length) {
      const beyond = Math.max((high - low) / 4, 3 * there(widths)[Math.floor(widths.length / 2)]);
      [low, high] = [Math.min(low, Math.max(below, low - beyond)), Math.max(high, Math.min(above, high + beyond))];
    }
    const room = (high - low) * 0.05 || Math.abs(high) * 0.05 || 1;
    return [low - room, high + room];
  }

  function show(index, on) {
    const best = data.series[index].estimate || data.series[index].value;
    const first = 1 + index * 4;
    chart.setSeries(first, { show: on && !!best.lower });
    chart.setSeries(first + 1, { show: on && !!best.lower });
    chart.setSeries(first + 2, { show: on && !!data.series[index].estimate });
    chart.setSeries(first + 3, { show: on });
  }

  async function start() {
    const asked = new URLSearchParams(location.search);
    asked.delete("before");
    const wanted = boxes.filter((each) => each.checked).map((each) => each.value);
    asked.delete("series");
    if (boxes.length <= 60) boxes.forEach((each) => asked.append("series", each.value));
    else wanted.forEach((each) => asked.append("series", each));
    for (const name of [...asked.keys()]) if (!asked.get(name)) asked.delete(name);
    const address = "/api/v1/jobs/" + encodeURIComponent(place.dataset.job) + "/series?" + asked;
    const answer = await fetch(address);
    if (!answer.ok) return;
    data = await answer.json();
    if (!data.times.length) return;
    if (picture) picture.setAttribute("hidden", "");
    place.after(tip);
    draw();
    document.querySelectorAll(".zoom").forEach((each) => each.removeAttribute("hidden"));
    boxes.forEach((each) => each.addEventListener("change", () => {
      const index = data.series.findIndex((one) => one.name === each.value);
      if (index >= 0) show(index, each.checked);
    }));
    new ResizeObserver(() => {
      if (Math.abs(chart.width - place.clientWidth) > 2) draw();
    }).observe(place);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  }

  start();
})();
