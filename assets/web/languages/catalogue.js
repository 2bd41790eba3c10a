// A language's words for the texts of the pages. English texts are the keys; {} in a key stands for what was put in.

const LONGEST = 1000; // characters of a text of ours
const SHORT = 12; // letters of a key that may stand in any sentence: what was put into it must be a word or a figure

const DOT = " · "; // between facts that are texts of their own

/** A catalogue: the texts without {}, and the patterns with it, those with the most letters first. */
export class Catalogue {
  /** @param {Record<string, string>} texts translations by English text */
  constructor(texts) {
    this.whole = new Map(Object.entries(texts));
    this.patterns = Object.keys(texts)
      .filter((key) => key.includes("{}"))
      .map((key) => ({ pieces: key.split("{}"), letters: key.replace(/[^\p{L}]/gu, "").length, key }))
      .sort((one, other) => other.letters - one.letters);
    /** @type {Map<string, string|null>} */
    this.translations = new Map();
  }

  /**
   * The translation of a text, with the space around it as it was; null where there is none.
   * @param {string} text
   */
  translate(text) {
    const words = text.trim();
    if (!words || text.length > LONGEST) return null;
    const key = words.replace(/\s+/g, " ");
    if (!this.translations.has(key)) this.translations.set(key, this.find(key));
    const translation = this.translations.get(key);
    return translation === null ? null : text.replace(words, () => translation);
  }

  /** @param {string} key @returns {string|null} */
  find(key) {
    const whole = this.whole.get(key);
    if (whole !== undefined && !key.includes("{}")) return whole;
    for (const { pieces, letters, key: pattern } of this.patterns) {
      const values = match(key, pieces);
      if (values?.every((value) => this.mayStand(value, letters))) {
        return putIn(this.whole.get(pattern), values.map((value) => this.whole.get(value) ?? value));
      }
    }
    const parts = key.split(DOT);
    const translations = parts.length > 1 ? parts.map((part) => this.find(part)) : [];
    return translations.some((part) => part !== null) ? translations.map((part, place) => part ?? parts[place]).join(DOT) : null;
  }

  /**
   * Whether a value may stand in a pattern of so many letters.
   * @param {string} value
   * @param {number} letters
   */
  mayStand(value, letters) {
    if (this.whole.has(value)) return true;
    return !value.includes(DOT) && (letters >= SHORT || !value.includes(" "));
  }
}

/**
 * What stands between the pieces of a pattern, from left to right; null where a text does not fit. One look at each
 * piece: texts of any length are read in linear time.
 * @param {string} text
 * @param {string[]} pieces
 */
function match(text, pieces) {
  const last = pieces[pieces.length - 1];
  if (!text.startsWith(pieces[0]) || !text.endsWith(last)) return null;
  const end = text.length - last.length;
  const values = [];
  let place = pieces[0].length;
  for (const piece of pieces.slice(1, -1)) {
    const next = text.indexOf(piece, place);
    if (next < 0) return null;
    values.push(text.slice(place, next));
    place = next + piece.length;
  }
  return place > end ? null : [...values, text.slice(place, end)];
}

/**
 * @param {string} translation with {} in the order of the English text, or {1}, {2} in its own
 * @param {string[]} values
 */
function putIn(translation, values) {
  let next = 0;
  return translation.replace(/\{(\d*)\}/g, (_, number) => values[number ? Number(number) - 1 : next++] ?? "");
}
