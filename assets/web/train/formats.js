// Names, sizes and times as every part of the Train page writes them.

// What a job can be at; those of methods come with the recipe's schema.
/** @type {Map<string, string>} */
const LABELS = new Map([["demonstrations", "Collecting demonstrations"], ["who", "Who knows what"], ["evaluate", "Evaluation"]]);

/**
 * The stages of a recipe's methods, in their order: [name, rule]. Their labels are known from then on.
 * @param {Record<string, any>} schema
 * @returns {[string, Record<string, any>][]}
 */
export function listMethods(schema) {
  const methods = Object.entries(schema.properties).filter(([, rule]) => rule.method);
  for (const [name, rule] of methods) LABELS.set(name, rule.method);
  return methods;
}

/**
 * What people call a stage; "" for none.
 * @param {string} name
 */
export function labelStage(name) {
  return name ? LABELS.get(name) || name.toUpperCase() : "";
}

/**
 * The address that runs a checkpoint.
 * @param {string} name
 */
export function runLink(name) {
  return `/?orchestrator=${encodeURIComponent(name)}`;
}

/** @param {number | null} value */
export function bytes(value) {
  if (value === null || value === undefined) return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let size = value;
  let unit = 0;
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${size.toFixed(size < 10 && unit > 0 ? 1 : 0)} ${units[unit]}`;
}

/** @param {string | null} iso */
export function moment(iso) {
  return iso ? new Date(iso).toLocaleString([], { dateStyle: "medium", timeStyle: "short" }) : "–";
}

/** @param {number | null} value */
export function share(value) {
  return value === null || value === undefined ? "–" : `${Math.round(value * 100)} %`;
}

/** @param {[number, number] | null} interval */
export function shareInterval(interval) {
  return interval ? `${share(interval[0])} to ${share(interval[1])}` : "–";
}

/**
 * A long time as people say it.
 * @param {number} value
 */
export function about(value) {
  if (value < 90) return `${Math.max(1, Math.round(value))} s`;
  if (value < 5400) return `${Math.round(value / 60)} min`;
  return value < 172_800 ? `${(value / 3600).toFixed(1)} h` : `${(value / 86_400).toFixed(1)} days`;
}

/** @param {string} text */
export function sentence(text) {
  return text[0].toUpperCase() + text.slice(1) + (text.endsWith(".") ? "" : ".");
}
