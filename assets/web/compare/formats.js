// Numbers and colours as every part of the Compare page writes them.

const COLOURS = 8;

/** @typedef {[number, number, number]} Interval mean, low and high */

/**
 * A colour of its own for each of some names, in their order.
 * @param {string[]} names
 */
export function palette(names) {
  return new Map(names.map((name, place) => [name, `var(--podium-series-${(place % COLOURS) + 1})`]));
}

/**
 * @param {number | null} value
 * @param {number} digits
 */
export function percent(value, digits = 0) {
  return value === null || value === undefined ? "–" : `${(value * 100).toFixed(digits)} %`;
}

/**
 * A share with its interval: 62 % [51, 73].
 * @param {Interval} value
 */
export function interval([mean, low, high]) {
  return `${(mean * 100).toFixed(0)} % [${(low * 100).toFixed(0)}, ${(high * 100).toFixed(0)}]`;
}

/**
 * A difference of shares in points: +4.2 [−1.0, +9.4].
 * @param {Interval} value
 */
export function difference([mean, low, high]) {
  return `${points(mean)} [${points(low)}, ${points(high)}]`;
}

/**
 * Sentences as they follow another one.
 * @param {string[]} list
 */
export function joinSentences(list) {
  return list.map((sentence) => ` ${sentence}`).join("");
}

/** @param {number} value */
export function points(value) {
  const text = Math.abs(value * 100).toFixed(1);
  return `${Number(text) === 0 ? "" : value > 0 ? "+" : "−"}${text}`;
}

/**
 * @param {number | null} value
 * @param {number} digits
 */
export function formatFixed(value, digits = 2) {
  return value === null || value === undefined ? "–" : Number(value).toFixed(digits);
}

/**
 * @param {number} number
 * @param {string} word
 * @param {string} many
 */
export function plural(number, word, many = `${word}s`) {
  return `${number} ${number === 1 ? word : many}`;
}

/**
 * Dollars of one episode, which are often fractions of a cent.
 * @param {number} value
 */
export function price(value) {
  if (!value) return "$0";
  return value < 0.1 ? `$${value.toPrecision(2)}` : `$${value.toFixed(2)}`;
}
