// One chart over the steps of a job, drawn by uPlot: its lines, a smoothed one where there is noise, and its marks.

import { STATUS_COLOURS } from "./specs.js";
import { el } from "../../lib/dom.js";

/** @typedef {import("./specs.js").ChartSpec} ChartSpec */
/** @typedef {{ key: string, label: string, values: (number | null)[], pair?: number }} Line of the other job where it has a pair:
 *   the place of this job's line of the same metric */

const HEIGHT = 168;
const SMOOTH_FROM = 40; // points
const STRONG = 0.97; // weight of what was before
const COLOURS = 8; // lines beyond them are dashed
const WHOLE = [1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 2500, 5000, 10000, 20000, 50000, 100000, 200000, 500000];

/** One chart: a heading with the value under the crosshair, the canvas, and a legend when it has several lines. */
export class Chart {
  /**
   * @param {UPlotClass} uPlot
   * @param {ChartSpec} spec
   * @param {import("./curves.js").Curves} owner
   */
  constructor(uPlot, spec, owner) {
    this.uPlot = uPlot;
    this.spec = spec;
    this.owner = owner;
    /** @type {UPlot | null} */
    this.plot = null;
    this.shape = "";
    this.hidden = new Set();
    this.root = el("section.train-curves-chart", { "data-chart": spec.id });
    const title = el("div.train-curves-title", {}, el("h4", {}, spec.title), el("span", {}, spec.about));
    this.value = el("output.train-curves-value", { "aria-live": "off" });
    const head = el("header.train-curves-head", {}, title, this.value);
    this.frame = el("div.train-curves-frame", { role: "img" });
    this.legend = el("div.train-curves-legend", { role: "group", "aria-label": `Lines of ${spec.title}` });
    this.root.append(head, this.frame, this.legend);
  }

  /**
   * @param {number[]} steps
   * @param {Line[]} lines
   */
  draw(steps, lines) {
    this.lines = lines;
    this.steps = steps;
    const { smoothing } = this.owner.controls;
    const smooth = !this.spec.exact && smoothing !== "off" && steps.length >= SMOOTH_FROM;
    this.log = this.owner.controls.log && this.canBeLog();
    const borders = this.owner.borders().map(({ border }) => border);
    const shape = `${lines.map((line) => line.key).join()}|${smooth}|${this.log}|${borders.length > 0}`;
    /** @param {Line} line */
    const draws = ({ values }) => (smooth ? [values, smoothValues(values, steps, borders, smoothing)] : [values]);
    const data = [steps, ...lines.flatMap(draws)];
    if (this.plot && shape === this.shape) this.plot.setData(data);
    else this.build(shape, data, smooth);
    if (!this.hovered) this.tell(null);
    this.frame.setAttribute("aria-label", this.describe());
  }

  /**
   * @param {string} shape
   * @param {(number | null)[][]} data
   * @param {boolean} smooth
   */
  build(shape, data, smooth) {
    this.plot?.destroy();
    this.shape = shape;
    this.colours = this.lines.map((line, place) => this.colour(line, place));
    /** @param {string} name */
    const paint = (name) => () => style(name);
    const axis = {
      stroke: paint("--podium-mute"), grid: { stroke: paint("--podium-line"), width: 1 }, ticks: { show: false },
      font: "11px Inter Variable",
    };
    const series = this.lines.flatMap((line, place) => {
      const stroke = () => style(this.colours[place]);
      const few = line.values.filter((value) => value !== null).length < 24;
      const full = {
        label: line.label, stroke, width: 2, dash: this.isDashed(line, place) ? [5, 4] : [], spanGaps: true,
        points: { show: few, size: 5, fill: stroke }, show: !this.hidden.has(line.key),
      };
      if (!smooth) return [full];
      const share = this.lines.length > 1 ? 18 : 30;
      return [{ ...full, stroke: () => faint(style(this.colours[place]), share), width: 1, points: { show: false } }, full];
    });
    this.plot = new this.uPlot(
      {
        width: Math.max(120, this.frame.clientWidth || 320), height: HEIGHT, legend: { show: false },
        padding: [this.owner.borders().length ? 18 : 8, 10, 0, 0],
        cursor: { drag: { x: false, y: false }, points: { size: 7 }, sync: { key: "podium-train", scales: ["x", null] } },
        scales: {
          x: { time: false, range: (_, low, high) => (low === high ? [low - 1, high + 1] : [low, high]) },
          y: { distr: this.log ? 3 : 1, range: (_, low, high) => this.range(low, high) },
        },
        axes: [
          { ...axis, space: 60, size: 26, incrs: WHOLE, values: (_, ticks) => ticks.map(tick) },
          { ...axis, size: 46, space: 32, values: (_, ticks) => ticks.map((value) => (value === null ? "" : this.format(value, true))) },
        ],
        series: [{}, ...series], hooks: { setCursor: [(plot) => this.tell(plot.cursor.idx)], draw: [(plot) => this.drawMarks(plot)] },
      },
      data, this.frame,
    );
    this.plot.over.addEventListener("click", () => {
      const at = this.plot.cursor.idx;
      if (at !== null && at !== undefined && this.owner.columns.places.has(this.steps[at])) this.owner.onStep(this.steps[at]);
    });
    this.drawLegend();
  }

  /**
   * @param {Line} line
   * @param {number} place
   * @returns {string}
   */
  colour(line, place) {
    if (this.spec.id === "status") return STATUS_COLOURS[line.label] || "--podium-mute";
    if (line.pair !== undefined) return this.colour(this.lines[line.pair], line.pair);
    const own = this.lines.filter(({ pair }) => pair === undefined);
    return own.length === 1 ? "--podium-accent" : `--podium-series-${(place % COLOURS) + 1}`;
  }

  /**
   * @param {Line} line
   * @param {number} place
   */
  isDashed(line, place) {
    return line.pair !== undefined || place >= COLOURS;
  }

  /** A logarithm shows what is above 0; shares have their whole range. */
  canBeLog() {
    return !this.spec.share && this.lines.every(({ values }) => values.every((value) => value === null || value > 0));
  }

  /**
   * @param {number | null} low
   * @param {number | null} high
   */
  range(low, high) {
    if (low === null || high === null) return this.log ? [0.1, 1] : [0, 1];
    if (this.log) return [low / 1.1, high * 1.1];
    if (this.spec.share) return [0, this.spec.tight ? Math.min(1.02, high * 1.15) : 1.02];
    if (low === high) return high > 0 ? [0, 2 * high] : [high - 1, high + 1];
    const room = (high - low || Math.abs(high) || 1) * 0.08;
    return [low >= 0 && low < 0.5 * high ? 0 : low - room, high + room];
  }

  drawLegend() {
    this.legend.replaceChildren();
    this.legend.hidden = this.lines.length < 2;
    this.shownValues = this.lines.map((line, place) => {
      const entry = el("button.train-curves-line", { type: "button", "aria-pressed": String(!this.hidden.has(line.key)) });
      const dot = el("i");
      dot.style.setProperty("--line", `var(${this.colours[place]})`);
      dot.classList.toggle("train-curves-dashed", this.isDashed(line, place));
      const value = el("span.train-curves-line-value");
      entry.append(dot, el("b", {}, line.label), value);
      entry.addEventListener("click", () => {
        const off = !this.hidden.delete(line.key) && Boolean(this.hidden.add(line.key));
        entry.setAttribute("aria-pressed", String(!off));
        const share = (this.plot.series.length - 1) / this.lines.length;
        for (let k = 0; k < share; k += 1) this.plot.setSeries(place * share + k + 1, { show: !off });
      });
      this.legend.append(entry);
      return value;
    });
  }

  /**
   * Values at a place of the data, or the newest ones.
   * @param {number | null} at
   */
  tell(at) {
    this.hovered = at !== null && at !== undefined;
    const step = this.hovered ? `step ${tick(this.steps[at])}` : "";
    const values = this.lines.map((line) => this.format(this.hovered ? near(line.values, at) : newest(line.values)));
    this.value.replaceChildren(...(step ? [el("small", {}, step)] : []), ...(this.lines.length === 1 ? [el("b", {}, values[0])] : []));
    this.shownValues?.forEach((node, place) => (node.textContent = values[place]));
  }

  /** What somebody who cannot see the canvas is told. */
  describe() {
    const parts = this.lines.map((line) => {
      const numbers = line.values.filter((value) => value !== null);
      return `${line.label || this.spec.title}: ${this.format(numbers.at(-1))}, from ${this.format(Math.min(...numbers))} to ${this.format(Math.max(...numbers))}`;
    });
    const [first, last] = [this.steps[0], this.steps.at(-1)];
    const begins = this.owner.borders().filter(({ border }) => border >= first && border < last);
    const phases = begins.map(({ border, name }) => `. ${name} begins after step ${border}`).join("");
    return `${this.spec.title} over steps ${first} to ${last}. ${parts.join(". ")}${phases}`;
  }

  /**
   * @param {number | null | undefined} value
   * @param {boolean} short
   */
  format(value, short = false) {
    if (value === null || value === undefined) return "–";
    if (this.spec.share) return `${(value * 100).toFixed(!short && value > 0 && value < 0.1 ? 1 : 0)} %`;
    const size = Math.abs(value);
    if (size >= 10000) return `${(value / 1000).toFixed(size >= 100000 ? 0 : 1)}k`;
    if (size && size < 0.001) return value.toExponential(short ? 0 : 2);
    return String(Number(value.toPrecision(short ? 3 : 4)));
  }

  /**
   * A line where GRPO begins and where each of its phases does; above it what the key calls it.
   * @param {UPlot} plot
   */
  drawBorders(plot) {
    const { ctx, bbox } = plot;
    const ratio = devicePixelRatio || 1;
    ctx.fillStyle = style("--podium-mute");
    ctx.font = `600 ${10 * ratio}px Inter Variable`;
    ctx.textAlign = "center";
    for (const { border, sign } of this.owner.borders()) {
      if (border < plot.scales.x.min || border >= plot.scales.x.max) continue;
      const x = Math.round(plot.valToPos(border + 0.5, "x", true));
      ctx.fillRect(x, bbox.top, ratio, bbox.height);
      ctx.fillText(sign, x, bbox.top - 4 * ratio);
    }
  }

  /** @param {UPlot} plot */
  drawMarks(plot) {
    const { ctx, bbox } = plot;
    const ratio = devicePixelRatio || 1;
    const [low, high] = [plot.scales.x.min, plot.scales.x.max];
    ctx.save();
    this.drawBorders(plot);
    for (const mark of this.owner.marks) {
      if (mark.step < low || mark.step > high) continue;
      const x = plot.valToPos(mark.step, "x", true);
      const y = bbox.top + bbox.height;
      const size = (mark.best ? 5.5 : 4) * ratio;
      ctx.fillStyle = style(mark.best ? "--podium-ok" : "--podium-mute");
      ctx.beginPath();
      ctx.moveTo(x, y - 2 * size);
      ctx.lineTo(x + size, y - size);
      ctx.lineTo(x, y);
      ctx.lineTo(x - size, y - size);
      ctx.fill();
    }
    ctx.restore();
  }

  redraw() {
    this.plot?.redraw(false);
  }

  recolour() {
    styles.clear();
    this.plot?.redraw(true, true);
  }

  resize() {
    const width = this.frame.clientWidth;
    if (this.plot && width && width !== this.plot.width) this.plot.setSize({ width, height: HEIGHT });
  }

  destroy() {
    this.plot?.destroy();
    this.plot = null;
    this.root.remove();
  }
}

/** @type {Map<string, string>} */
const styles = new Map();

/**
 * A colour token as the canvas takes it.
 * @param {string} name
 */
function style(name) {
  if (!styles.has(name)) styles.set(name, getComputedStyle(document.body).getPropertyValue(name).trim());
  return styles.get(name);
}

/**
 * @param {string} colour
 * @param {number} share
 */
function faint(colour, share) {
  return `color-mix(in srgb, ${colour} ${share}%, transparent)`;
}

/** @param {number} value */
function tick(value) {
  return value.toLocaleString("en-US");
}

/**
 * An exponential mean, so that a trend shows in noise; it begins anew behind each border. Few values stay as they are.
 * @param {(number | null)[]} values
 * @param {number[]} steps
 * @param {number[]} borders
 * @param {import("./controls.js").Smoothing} smoothing
 */
function smoothValues(values, steps, borders, smoothing) {
  const count = values.filter((value) => value !== null).length;
  if (count < SMOOTH_FROM) return values;
  const weight = smoothing === "strong" ? STRONG : Math.min(0.92, 1 - 4 / Math.max(8, count / 8));
  /** @type {number | null} */
  let mean = null;
  return values.map((value, place) => {
    if (place && borders.some((border) => steps[place - 1] <= border && steps[place] > border)) mean = null;
    if (value === null) return null;
    mean = mean === null ? value : weight * mean + (1 - weight) * value;
    return mean;
  });
}

/** @param {(number | null)[]} values */
function newest(values) {
  return values.findLast((value) => value !== null);
}

/**
 * The value at a place, or the last one before it.
 * @param {(number | null)[]} values
 * @param {number} at
 */
function near(values, at) {
  for (let k = at; k >= 0; k -= 1) if (values[k] !== null) return values[k];
  return null;
}
