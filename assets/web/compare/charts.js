// The charts of the Compare page as plain SVG, so that what is seen is what is exported. Every function takes a width in
// pixels and gives one element with the legend inside; colours are CSS variables.

import { svg } from "../lib/dom.js";

/** @typedef {import("./formats.js").Interval} Interval */
/** @typedef {Map<string, string>} Colours */
/** @typedef {(value: number) => number} Scale */
/** @typedef {(value: number) => string} Write */
/** @typedef {{ label: string, value: Interval, note: string }} Labelled */
/** @typedef {{ label: string, points: { name: string, value: Interval, note: string }[] }} DotGroup */
/** @typedef {{ name: string, x: number, y: Interval, efficient: boolean, note: string }} Dot */
/** @typedef {{ name: string, points: number[][], dots?: boolean }} Series */
/** @typedef {{ step: number, best?: boolean }} Mark */
/** @typedef {{ x: number, y: number, size: number }} Spot taken by a name */
/**
 * @typedef {{ top: number, height: number, left: number, right: number, width: number, written: Write,
 *   onStep: (step: number) => void }} Surface
 */
/**
 * @typedef {{ written: Write, low?: number | null, high?: number | null, marks?: Mark[], onStep?: ((step: number) => void) | null,
 *   range?: number[] | null, height?: number }} LineOptions
 */
/** @typedef {{ label: string, cells: ({ value: number, text: string } | null)[] }} Box */

const LETTER = 6.6; // width of a letter at 12 px, about
const LINE = 18;
const ROW = 26;
const GAP = 12;

/**
 * Points with intervals, in groups of one line each: [{label, points: [{name, value: [mean, low, high], note}]}].
 * @param {number} width
 * @param {DotGroup[]} groups
 * @param {Colours} colours
 * @param {{ low?: number, high?: number, written: Write }} how
 */
export function dotPlot(width, groups, colours, { low = 0, high = 1, written }) {
  const names = [...new Set(groups.flatMap((group) => group.points.map((point) => point.name)))];
  const left = gutter(groups.map((group) => group.label), width);
  const legendHeight = names.length > 1 ? legendOf(null, names, colours, width) : 0;
  const heights = groups.map((group) => Math.max(ROW, group.points.length * 13 + 10));
  const height = heights.reduce((sum, size) => sum + size, 0) + 24 + legendHeight;
  const x = scale(low, high, left, width - 24);
  const root = canvas(width, height, "Scores with 95 % intervals");
  if (names.length > 1) legendOf(root, names, colours, width);
  let y = legendHeight;
  axis(root, x, ticks(low, high), y, height - 22, written);
  groups.forEach((group, place) => {
    if (place) root.append(svg("line", { x1: 0, x2: width, y1: y, y2: y, class: "compare-chart-grid" }));
    root.append(text(cut(group.label, left), left - 10, y + heights[place] / 2, "compare-chart-label", "end"));
    group.points.forEach((point, number) => {
      const at = y + 5 + (number + 0.5) * ((heights[place] - 10) / group.points.length);
      root.append(whisker(x, at, point, colours.get(point.name), `${group.label}, ${point.name}: ${point.note}`));
    });
    y += heights[place];
  });
  return root;
}

/**
 * Differences from zero with intervals, a line each: [{label, value: [mean, low, high], note}].
 * @param {number} width
 * @param {Labelled[]} rows
 * @param {{ written: Write }} how
 */
export function differencePlot(width, rows, { written }) {
  const ends = rows.flatMap((row) => row.value);
  const [least, most] = [Math.min(0, ...ends), Math.max(0, ...ends)]; // zero is always there, an empty side is not
  const room = Math.max(0.05, most - least) * 0.06;
  const [begin, end] = [least - room, most + room];
  const left = gutter(rows.map((row) => row.label), width);
  const roomy = width > 520; // else the table below says it
  const right = roomy ? Math.min(170, 14 + Math.max(...rows.map((row) => row.note.length)) * LETTER) : 24;
  const height = rows.length * ROW + 24;
  const x = scale(begin, end, left, width - right);
  const root = canvas(width, height, "Differences with 95 % intervals");
  axis(root, x, ticks(begin, end, roomy ? 5 : 2), 0, height - 22, written);
  root.append(svg("line", { x1: x(0), x2: x(0), y1: 0, y2: height - 22, class: "compare-chart-zero" }));
  rows.forEach((row, place) => {
    const at = place * ROW + ROW / 2;
    const colour = row.value[2] < 0 ? "var(--podium-err)" : row.value[1] > 0 ? "var(--podium-ok)" : "var(--podium-mute)";
    const [from, to] = [Math.min(x(0), x(row.value[0])), Math.max(x(0), x(row.value[0]))];
    root.append(svg("rect", { x: from, y: at - 7, width: Math.max(1, to - from), height: 14, rx: 2, fill: colour, "fill-opacity": 0.25 }));
    root.append(
      text(cut(row.label, left), left - 10, at, "compare-chart-label", "end"), whisker(x, at, row, colour, `${row.label}: ${row.note}`),
    );
    if (roomy) root.append(text(row.note, width - right + 8, at, "compare-chart-value"));
  });
  return root;
}

/**
 * Bars of shares: [{label, parts: {name: share}}]. Shares of one line add up to one.
 * @param {number} width
 * @param {{ label: string, parts: Record<string, number> }[]} rows
 * @param {string[]} names
 * @param {Colours} colours
 */
export function shareBars(width, rows, names, colours) {
  const left = gutter(rows.map((row) => row.label), width);
  const legendHeight = legendOf(null, names, colours, width);
  const root = canvas(width, legendHeight + rows.length * ROW + 4, "Shares");
  legendOf(root, names, colours, width);
  rows.forEach((row, place) => {
    const y = legendHeight + place * ROW;
    let at = left;
    root.append(text(cut(row.label, left), left - 10, y + ROW / 2, "compare-chart-label", "end"));
    for (const name of names) {
      const share = row.parts[name] || 0;
      const size = share * (width - left - 4);
      if (size <= 0) continue;
      const bar = svg(
        "rect", { x: at, y: y + 4, width: Math.max(0.5, size - 1), height: ROW - 8, rx: 2, fill: colours.get(name) },
        makeTitle(`${row.label}: ${name} ${(share * 100).toFixed(0)} %`),
      );
      root.append(bar);
      if (size > 34) root.append(text(`${(share * 100).toFixed(0)} %`, at + size / 2, y + ROW / 2, "compare-chart-inside", "middle"));
      at += size;
    }
  });
  return root;
}

const MIXTURES = 24; // points of a line between two baselines: on a logarithmic axis it is no straight one

/**
 * Price against score: [{name, x, y: [mean, low, high], efficient, note}]; the frontier is a line, and so are the
 * mixtures of baselines, whose corners are [price, score].
 * @param {number} width
 * @param {Dot[]} dots
 * @param {Colours} colours
 * @param {{ label: string, written: Write, hull?: [number, number][] }} how
 */
export function scatter(width, dots, colours, { label, written, hull = [] }) {
  const height = Math.max(280, Math.min(420, width * 0.55));
  const [left, bottom, top] = [48, 44, 10];
  const most = Math.max(...dots.map((dot) => dot.x), 1e-12);
  const least = Math.min(...dots.filter((dot) => dot.x > 0).map((dot) => dot.x));
  const wide = dots.every((dot) => dot.x > 0) && most / least > 30;
  /** @type {[number, number]} */
  const reach = wide ? [Math.log10(least) - 0.15, Math.log10(most) + 0.15] : [-0.03 * most, most * 1.08];
  const place = scale(...reach, left, width - 16);
  /** @param {number} value */
  const x = (value) => place(wide ? Math.log10(value) : value);
  const y = scale(0, 1, height - bottom, top);
  const root = canvas(width, height, `Score against ${label}`);
  for (const tick of [0, 0.25, 0.5, 0.75, 1]) root.append(
    svg("line", { x1: left, x2: width - 16, y1: y(tick), y2: y(tick), class: "compare-chart-grid" }),
    text(`${tick * 100} %`, left - 8, y(tick), "compare-chart-tick", "end"),
  );
  const marks = wide ? decades(...reach) : ticks(0, most * 1.08);
  for (const tick of marks) root.append(
    svg("line", { x1: x(tick), x2: x(tick), y1: top, y2: height - bottom, class: "compare-chart-grid" }),
    text(written(tick), x(tick), height - bottom + 14, "compare-chart-tick", "middle"),
  );
  root.append(text(`${label}${wide ? ", logarithmic" : ""}`, (left + width) / 2, height - 8, "compare-chart-label", "middle"));
  const end = wide ? 10 ** reach[1] : reach[1];
  const mixtures = mixAlong([[0, 0], ...hull, [end, hull.at(-1)?.[1] ?? 0]]).filter(([price]) => !wide || price >= 10 ** reach[0]);
  if (hull.length) root.append(svg(
    "polyline", { points: mixtures.map(([price, score]) => `${x(price)},${y(score)}`).join(" "), class: "compare-chart-mixtures" },
    makeTitle("The best mixtures of baselines at each price"),
  ));
  const best = dots.filter((dot) => dot.efficient).sort((a, b) => a.x - b.x || a.y[0] - b.y[0]);
  if (best.length > 1)
    root.append(svg("polyline", { points: best.map((dot) => `${x(dot.x)},${y(dot.y[0])}`).join(" "), class: "compare-chart-frontier" }));
  /** @type {Spot[]} */
  const taken = [];
  for (const dot of [...dots].sort((a, b) => b.y[0] - a.y[0])) {
    const [at, on] = [x(dot.x), y(dot.y[0])];
    const group = svg(
      "g", { class: "compare-chart-dot" }, makeTitle(`${dot.name}: ${dot.note}`),
      svg("line", { x1: at, x2: at, y1: y(dot.y[1]), y2: y(dot.y[2]), stroke: colours.get(dot.name), "stroke-width": 1.5, opacity: 0.5 }),
      dot.efficient
        ? svg("circle", { cx: at, cy: on, r: 6, fill: colours.get(dot.name) })
        : svg("circle", { cx: at, cy: on, r: 5, stroke: colours.get(dot.name), "stroke-width": 2, class: "compare-chart-hollow" }),
    );
    const size = dot.name.length * LETTER;
    const leftwards = at + 10 + size > width - 8;
    const spot = free(taken, leftwards ? at - 10 - size : at + 10, on, size);
    group.append(text(dot.name, leftwards ? at - 10 : at + 10, spot, "compare-chart-name", leftwards ? "end" : "start"));
    root.append(group);
  }
  return root;
}

/**
 * Points along the lines between corners.
 * @param {[number, number][]} corners
 * @returns {[number, number][]}
 */
function mixAlong(corners) {
  return corners.flatMap(([price, score], place) => {
    const next = corners[place + 1];
    if (!next) return [[price, score]];
    return Array.from({ length: MIXTURES }, (_, part) => [
      price + ((next[0] - price) * part) / MIXTURES, score + ((next[1] - score) * part) / MIXTURES,
    ]);
  });
}

/**
 * Lines over steps: [{name, points: [[step, value, low?, high?]], dots?}]. `onStep(step)` hears a click.
 * @param {number} width
 * @param {Series[]} series
 * @param {Colours} colours
 * @param {LineOptions} how
 */
export function lineChart(width, series, colours, {
  written, low = null, high = null, marks = [], onStep = null, range = null, height = 190,
}) {
  const shown = series.filter((entry) => entry.points.length);
  const names = shown.map((entry) => entry.name);
  const legendHeight = names.length > 1 ? legendOf(null, names, colours, width) : 0;
  const [left, bottom] = [44, 24];
  const steps = [...new Set(shown.flatMap((entry) => entry.points.map(([step]) => step)))].sort((a, b) => a - b);
  const values = shown.flatMap((entry) => entry.points.flatMap(([, value, ...more]) => [value, ...more])).filter((value) =>
    value !== null && value !== undefined);
  const [bottomValue, topValue] = [low ?? Math.min(...values, 0), high ?? (Math.max(...values) * 1.08 || 1)];
  const [begin, end] = range || [steps[0], steps.at(-1)];
  const x = scale(begin, end === begin ? begin + 1 : end, left, width - 14);
  const y = scale(bottomValue, topValue, legendHeight + height - bottom, legendHeight + 8);
  const root = canvas(width, legendHeight + height, names.join(", "));
  if (names.length > 1) legendOf(root, names, colours, width);
  for (const tick of ticks(bottomValue, topValue, 4)) root.append(
    svg("line", { x1: left, x2: width - 10, y1: y(tick), y2: y(tick), class: "compare-chart-grid" }),
    text(written(tick), left - 7, y(tick), "compare-chart-tick", "end"),
  );
  for (const tick of ticks(begin, end, Math.max(2, Math.floor(width / 90))).filter(Number.isInteger))
    root.append(text(String(tick), x(tick), legendHeight + height - 8, "compare-chart-tick", "middle"));
  for (const mark of marks)
    if (mark.step >= begin && mark.step <= end) root.append(diamond(x(mark.step), legendHeight + height - bottom, mark));
  for (const entry of shown) root.append(...line(entry, x, y, colours.get(entry.name)));
  if (onStep) root.append(clickable(steps, shown, x, {
    top: legendHeight, height: height - bottom, left, right: width - 10, written, onStep, width,
  }));
  return root;
}

/**
 * @param {Series} series
 * @param {Scale} x
 * @param {Scale} y
 * @param {string} colour
 */
function line(series, x, y, colour) {
  const points = series.points.filter(([, value]) => value !== null && value !== undefined);
  const parts = [];
  if (!series.dots && points.length > 1) parts.push(svg("polyline", {
    points: points.map(([step, value]) => `${x(step).toFixed(1)},${y(value).toFixed(1)}`).join(" "), class: "compare-chart-line",
    stroke: colour,
  }));
  if (series.dots || points.length < 24) {
    for (const [step, value, low, high] of points) {
      if (low !== undefined)
        parts.push(svg("line", { x1: x(step), x2: x(step), y1: y(low), y2: y(high), stroke: colour, "stroke-width": 1.5, opacity: 0.55 }));
      const dot =
        svg("circle", { cx: x(step), cy: y(value), r: series.dots ? 4.5 : 2.5, fill: colour }, makeTitle(`${series.name}, step ${step}`));
      parts.push(dot);
    }
  }
  return parts;
}

/**
 * The surface over a line chart: a crosshair with the values, and a click for the step.
 * @param {number[]} steps
 * @param {Series[]} series
 * @param {Scale} x
 * @param {Surface} place
 */
function clickable(steps, series, x, { top, height, left, right, written, onStep, width }) {
  const cross = svg("line", { y1: top + 6, y2: top + height, class: "compare-chart-cross", visibility: "hidden" });
  const readout = text("", 0, top + 12, "compare-chart-value");
  const surface = svg("rect", { x: left, y: top, width: Math.max(1, right - left), height, fill: "transparent", "pointer-events": "all" });
  /** @param {MouseEvent} event */
  const nearest = (event) => {
    const box = surface.ownerSVGElement.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * width;
    return steps.reduce((best, step) => (Math.abs(x(step) - at) < Math.abs(x(best) - at) ? step : best), steps[0]);
  };
  surface.addEventListener("pointermove", (event) => {
    const step = nearest(event);
    for (const name of ["x1", "x2"]) cross.setAttribute(name, String(x(step)));
    cross.setAttribute("visibility", "visible");
    const values = series
      .map((entry) => entry.points.find(([at]) => at === step)?.[1])
      .map((value) => (value === undefined || value === null ? null : written(value)))
      .filter(Boolean);
    readout.textContent = `step ${step}: ${values.join(" · ")}`;
    const far = x(step) > (left + right) / 2;
    readout.setAttribute("x", String(x(step) + (far ? -6 : 6)));
    readout.setAttribute("text-anchor", far ? "end" : "start");
  });
  surface.addEventListener("pointerleave", () => {
    cross.setAttribute("visibility", "hidden");
    readout.textContent = "";
  });
  surface.addEventListener("click", (event) => onStep(nearest(event)));
  return svg("g", { class: "compare-chart-hit" }, cross, readout, surface);
}

/**
 * A table of shares as coloured cells: rows [{label, cells: [{value, text} or null]}].
 * @param {number} width
 * @param {string[]} columns
 * @param {Box[]} rows
 */
export function heat(width, columns, rows) {
  const left = gutter(rows.map((row) => row.label), width);
  const size = (width - left) / columns.length;
  const root = canvas(width, 26 + rows.length * 34, "Scores by condition");
  columns.forEach((name, place) => root.append(text(
    cut(name, size + 16), left + (place + 0.5) * size, 12, "compare-chart-tick", "middle",
  )));
  rows.forEach((row, number) => {
    const y = 26 + number * 34;
    root.append(text(cut(row.label, left), left - 10, y + 16, "compare-chart-label", "end"));
    row.cells.forEach((cell, place) => {
      root.append(svg("rect", {
        x: left + place * size + 1, y, width: size - 2, height: 32, rx: 4, fill: cell ? shade(cell.value) : "var(--podium-sunk)",
      }));
      root.append(text(cell ? cell.text : "–", left + (place + 0.5) * size, y + 16, "compare-chart-value", "middle"));
    });
  });
  return root;
}

/**
 * The ground of a cell that holds a share.
 * @param {number} value
 */
export function shade(value) {
  return `color-mix(in srgb, var(--podium-accent) ${Math.round(6 + value * 34)}%, var(--podium-card))`;
}

// Parts

/**
 * @param {number} width
 * @param {number} height
 * @param {string} label
 */
export function canvas(width, height, label) {
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, class: "compare-chart", role: "img", "aria-label": label });
}

/**
 * @param {string} content
 * @param {number} x
 * @param {number} y
 * @param {string} className
 * @param {"start" | "middle" | "end"} anchor
 */
export function text(content, x, y, className, anchor = "start") {
  const node = svg("text", { x, y, class: className, "text-anchor": anchor, "dominant-baseline": "central" });
  node.textContent = content;
  return node;
}

/** @param {string} content */
function makeTitle(content) {
  const node = svg("title");
  node.textContent = content;
  return node;
}

/**
 * @param {Scale} x
 * @param {number} y
 * @param {{ value: Interval }} point
 * @param {string} colour
 * @param {string} title
 */
function whisker(x, y, { value: [mean, low, high] }, colour, title) {
  return svg(
    "g", {}, makeTitle(title), svg("line", { x1: x(low), x2: x(high), y1: y, y2: y, stroke: colour, "stroke-width": 2, opacity: 0.55 }),
    svg("circle", { cx: x(mean), cy: y, r: 4.5, fill: colour }),
  );
}

/**
 * @param {number} x
 * @param {number} y
 * @param {Mark} mark
 */
function diamond(x, y, mark) {
  const size = mark.best ? 5.5 : 4;
  return svg(
    "path",
    {
      d: `M${x},${y - size}L${x + size},${y}L${x},${y + size}L${x - size},${y}Z`,
      class: mark.best ? "compare-chart-best" : "compare-chart-mark",
    },
    makeTitle(`Checkpoint at step ${mark.step}${mark.best ? ", the best on validation" : ""}`),
  );
}

/**
 * @param {SVGElement} root
 * @param {Scale} x
 * @param {number[]} marks
 * @param {number} top
 * @param {number} bottom
 * @param {Write} written
 */
function axis(root, x, marks, top, bottom, written) {
  for (const tick of marks) root.append(
    svg("line", { x1: x(tick), x2: x(tick), y1: top, y2: bottom, class: "compare-chart-grid" }),
    text(written(tick), x(tick), bottom + 12, "compare-chart-tick", "middle"),
  );
}

/**
 * Coloured squares with names, in as many lines as they need; gives the height that they take.
 * @param {SVGElement | null} root
 * @param {string[]} names
 * @param {Colours} colours
 * @param {number} width
 */
function legendOf(root, names, colours, width) {
  let [x, y] = [0, 9];
  for (const name of names) {
    const size = 20 + name.length * LETTER + GAP;
    if (x && x + size > width) [x, y] = [0, y + LINE];
    if (root) root.append(
      svg("rect", { x, y: y - 5, width: 10, height: 10, rx: 3, fill: colours.get(name) }), text(name, x + 15, y, "compare-chart-name"),
    );
    x += size;
  }
  return y + 15;
}

/**
 * Room for labels on the left.
 * @param {string[]} labels
 * @param {number} width
 */
function gutter(labels, width) {
  return Math.min(width * 0.38, Math.max(60, 14 + Math.max(0, ...labels.map((label) => label.length)) * LETTER));
}

/**
 * @param {string} label
 * @param {number} room
 */
function cut(label, room) {
  const most = Math.max(4, Math.floor((room - 12) / LETTER));
  return label.length > most ? `${label.slice(0, most - 1)}…` : label;
}

/**
 * @param {number} low
 * @param {number} high
 * @param {number} from
 * @param {number} to
 * @returns {Scale}
 */
function scale(low, high, from, to) {
  return (value) => from + ((value - low) / (high - low || 1)) * (to - from);
}

/**
 * Round numbers from low to high.
 * @param {number} low
 * @param {number} high
 * @param {number} about
 */
function ticks(low, high, about = 5) {
  const raw = (high - low) / about || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 2.5, 5, 10].find((factor) => factor * power >= raw * 0.999);
  const marks = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-6; at += step) marks.push(Number(at.toPrecision(12)));
  return marks;
}

/**
 * @param {number} low
 * @param {number} high
 */
function decades(low, high) {
  const marks = [];
  for (let power = Math.floor(low); power <= Math.ceil(high); power += 1)
    for (const lead of [1, 3]) {
      const at = Math.log10(lead) + power;
      if (at >= low && at <= high) marks.push(lead * 10 ** power);
    }
  return marks;
}

/**
 * A height for a name near `y` that no other name has.
 * @param {Spot[]} taken
 * @param {number} x
 * @param {number} y
 * @param {number} size
 */
function free(taken, x, y, size) {
  let at = y;
  /** @param {Spot} box */
  const overlaps = (box) => Math.abs(box.y - at) < 13 && x < box.x + box.size && box.x < x + size;
  for (let tries = 0; tries < 30 && taken.some(overlaps); tries += 1)
    at = y + (tries % 2 ? -1 : 1) * 7 * (Math.floor(tries / 2) + 1);
  taken.push({ x, y: at, size });
  return at;
}
