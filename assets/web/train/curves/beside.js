// The curves of one job beside those of another, over the steps of both.

/** @typedef {import("./chart.js").Line} Line */
/** @typedef {import("./columns.js").Columns} Columns */

/**
 * The lines of one job, then those of the other over the same steps: a step that only one of them has is a gap in the other's
 * lines. Of the other's steps those from the first shown step to `last` are taken.
 * @param {number[]} steps in order
 * @param {Line[]} lines
 * @param {Columns} other
 * @param {string} label of the other job
 * @param {number[]} range the first and the last step that are shown
 * @returns {{ steps: number[], lines: Line[] }}
 */
export function putBeside(steps, lines, other, label, [first, last]) {
  const shown = other.steps.filter((step) => step >= first && step <= last);
  const all = [...new Set([...steps, ...shown])].sort((a, b) => a - b);
  const places = new Map(steps.map((step, place) => [step, place]));
  const spread = lines.map((line) => ({ ...line, values: all.map((step) => line.values[places.get(step)] ?? null) }));
  const added = lines
    .map((line, pair) => ({ key: `${line.key} of the other`, label: line.label ? `${line.label}, ${label}` : label, pair,
      values: all.map((step) => other.series[line.key]?.[other.places.get(step)] ?? null) }))
    .filter((line) => line.values.some((value) => value !== null));
  return added.length ? { steps: all, lines: [...spread.map(nameOwn), ...added] } : { steps, lines };
}

/** @param {Line} line */
function nameOwn(line) {
  return { ...line, label: line.label || "this job" };
}

/**
 * Every metric of a job as comma-separated values, a step a row, and those of the job beside it in further columns.
 * @param {Columns} own
 * @param {{ columns: Columns, label: string } | null} other
 */
export function writeCsv(own, other) {
  const steps = [...new Set([...own.steps, ...(other?.columns.steps || [])])].sort((a, b) => a - b);
  const columns = [...listColumns(own, ""), ...(other ? listColumns(other.columns, ` (${other.label})`) : [])];
  const head = ["step", ...columns.map(([name]) => name)].map(quote).join();
  return [head, ...steps.map((step) => [step, ...columns.map(([, read]) => read(step) ?? "")].join())].join("\n") + "\n";
}

/**
 * @param {Columns} columns
 * @param {string} suffix
 * @returns {[string, (step: number) => number | null | undefined][]}
 */
function listColumns(columns, suffix) {
  return Object.entries(columns.series).map(([key, values]) => [key + suffix, (step) => values[columns.places.get(step)]]);
}

/** @param {string} text */
function quote(text) {
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
