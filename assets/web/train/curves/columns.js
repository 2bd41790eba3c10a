// Metric rows as columns, as uPlot takes them.

const MOST = 2600; // points that are kept before the server is asked to thin them out

/** @typedef {{ step: number, stage?: string, [metric: string]: any }} MetricRow */

/** Metric rows folded by step, as the server folds them. */
export class Columns {
  /** @param {Partial<import("../../types").CurveColumns>} columns */
  constructor({ steps = [], series = {} } = {}) {
    this.steps = steps;
    this.series = series;
    this.places = new Map(steps.map((step, place) => [step, place]));
  }

  /** @param {MetricRow[]} rows */
  take(rows) {
    for (const row of rows) {
      if (["demonstrations", "who", "evaluate"].includes(row.stage)) continue;
      let place = this.places.get(row.step);
      if (place === undefined) {
        place = this.steps.push(row.step) - 1;
        this.places.set(row.step, place);
        for (const values of Object.values(this.series)) values.push(null);
      }
      for (const [key, value] of Object.entries(row)) {
        if (typeof value !== "number" || ["step", "at", "epoch", "num_tokens"].includes(key)) continue;
        this.series[key] ||= new Array(this.steps.length).fill(null);
        this.series[key][place] = value;
      }
    }
  }

  get tooMany() {
    return this.steps.length > MOST;
  }

  /** @param {string} key */
  last(key) {
    const values = this.series[key] || [];
    for (let k = values.length - 1; k >= 0; k -= 1) if (values[k] !== null) return values[k];
    return null;
  }
}
