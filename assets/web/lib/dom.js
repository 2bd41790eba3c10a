// Small helpers shared by the studio's parts. Data reaches the page through textContent only.

const SVG = "http://www.w3.org/2000/svg";

/**
 * An element: `el("button.page-button", { type: "button" }, "Save")`. Children are nodes or text; those that are null
 * or "" are left out.
 * @template {string} Selector
 * @param {Selector} selector the tag and its classes
 * @param {Record<string, any>} [attributes]
 * @param {...any} children
 * @returns {ElementOf<Selector>}
 */
export function el(selector, attributes = {}, ...children) {
  const [tag, ...classes] = selector.split(".");
  const node = document.createElement(tag);
  if (classes.length) node.className = classes.join(" ");
  return /** @type {any} */ (fill(node, attributes, children));
}

/**
 * An SVG element, made like `el`.
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, any>} [attributes]
 * @param {...any} children
 * @returns {SVGElementTagNameMap[Tag]}
 */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/**
 * @param {any} node
 * @param {Record<string, any>} attributes
 * @param {any[]} children
 */
function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

/**
 * What a page begins with: its name, and what it is for.
 * @param {string} title
 * @param {string} about
 */
export function heading(title, about) {
  const box = el("header.podium-heading");
  const text = el("div");
  text.append(el("h1", {}, title), el("p", {}, about));
  box.append(text);
  return box;
}

/**
 * A 24 px line icon from one path.
 * @param {string} path
 */
export function icon(path, className = "podium-icon") {
  const node = svg("svg", { viewBox: "0 0 24 24", "aria-hidden": "true", class: className });
  node.append(svg("path", { d: path }));
  return node;
}

/** @param {number|null} value */
export function seconds(value) {
  if (value === null || value === undefined) return "";
  if (value < 0.0995) return `${(value * 1000).toFixed(value < 0.00995 ? 1 : 0)} ms`;
  if (value < 59.95) return `${value.toFixed(value < 9.995 ? 2 : 1)} s`;
  const whole = Math.round(value);
  return `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

/** @param {number|null} value */
export function dollars(value) {
  if (!value) return "$0";
  return value < 0.01 ? `$${value.toFixed(5)}` : `$${value.toFixed(2)}`;
}

/** @param {number|null|undefined} value */
export function count(value) {
  return Number(value || 0).toLocaleString("en-US");
}

/**
 * JSON values as people read them: text as it is, everything else indented.
 * @param {any} value
 */
export function readable(value) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

/**
 * Copy text and say so on the button, or that it was not copied: over plain http browsers let no page copy.
 * @param {string|(() => string)} text
 * @param {string} label
 */
export function copyButton(text, label = "Copy") {
  const button = el("button.podium-link", { type: "button" }, label);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(typeof text === "function" ? text() : text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not copied";
    }
    setTimeout(() => (button.textContent = label), 1200);
  });
  return button;
}

/**
 * Save what the page has made as a file.
 * @param {string} name
 * @param {Blob} blob
 */
export function saveFile(name, blob) {
  const link = el("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000); // a busy browser reads it late
}

/**
 * Put `value` into the address under `name`, or take it out.
 * @param {string} name
 * @param {any} value
 */
export function remember(name, value) {
  const url = new URL(location.href);
  if (value === null || value === undefined || value === "") url.searchParams.delete(name);
  else url.searchParams.set(name, value);
  history.replaceState(history.state, "", url);
}

/** @param {string} name */
export function recall(name) {
  return new URL(location.href).searchParams.get(name);
}
