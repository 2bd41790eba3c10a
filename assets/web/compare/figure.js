// Frames of the Compare page: a figure that exports as CSV, SVG and PNG, and a table that exports as Markdown and CSV.

import { copyButton, el, svg } from "../lib/dom.js";

/** @typedef {string | number | boolean | null | undefined} Cell */
/** @typedef {{ columns: string[], rows: Cell[][] }} Data */
/**
 * @template Row
 * @typedef {{ label: string, text: (row: Row) => string, node?: (row: Row) => Node | string, csv?: [string, (row: Row) => Cell][],
 *   number?: boolean, title?: string }} Column
 */
/**
 * @typedef {{ name: string, title: string, about?: string, draw: (width: number) => SVGSVGElement, data: () => Data,
 *   show?: HTMLElement | null }} FigureSpec
 */

const STYLES = [
  "fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "opacity", "fill-opacity", "font-family", "font-size",
  "font-weight", "text-anchor", "dominant-baseline",
];
const SCALE = 2; // pixels of a PNG for each unit
const MARGIN = 16;

/**
 * A figure. `draw(width)` gives an SVG element, `data()` is {columns, rows} with plain numbers. With `show` the figure
 * shows that element instead, and `draw` is its picture for exports.
 */
export class Figure {
  /** @param {FigureSpec} figure */
  constructor({ name, title, about = "", draw, data, show = null }) {
    this.name = name;
    this.title = title;
    this.draw = draw;
    this.data = data;
    this.show = show;
    this.width = 0; // that it was drawn for
    this.root = el("section.compare-figure", { "data-figure": name, "aria-label": title });
    this.frame = el("div.compare-figure-frame");
    const head = heading(title, about);
    head.append(this.exports());
    this.root.append(head, this.frame);
    if (show) this.frame.append(show);
    else new ResizeObserver(() => this.redraw()).observe(this.frame);
  }

  exports() {
    return el(
      "div.compare-figure-exports", { role: "group", "aria-label": `Export ${this.title}` },
      action("CSV", () => save(`${this.name}.csv`, csv(this.data()), "text/csv")), ...this.pictures(),
    );
  }

  /** The buttons that save the figure as an image. */
  pictures() {
    return [action("SVG", () => save(`${this.name}.svg`, this.picture(), "image/svg+xml")), action("PNG", () => this.savePng())];
  }

  /**
   * Draw for the present width; the same width again only when the data changed.
   * @param {boolean} changed
   * @param {number} room
   */
  redraw(changed = false, room = this.frame.clientWidth) {
    if (this.show) return;
    const width = Math.floor(room);
    if (!width || (width === this.width && !changed)) return;
    this.width = width;
    this.frame.replaceChildren(this.draw(width));
  }

  /**
   * Take over what another figure of the same name draws; the frame and its buttons stay.
   * @param {Pick<Figure, "draw" | "data">} figure
   */
  renew({ draw, data }) {
    Object.assign(this, { draw, data });
    this.redraw(true);
  }

  /** The figure as a file of its own: every style is written into it. */
  picture() {
    const drawn = this.draw(this.width || 800);
    const stage = el("div.compare-figure-stage", {}, drawn);
    this.frame.append(stage);
    const text = standalone(drawn, this.title);
    stage.remove();
    return text;
  }

  async savePng() {
    const image = new Image();
    const address = URL.createObjectURL(new Blob([this.picture()], { type: "image/svg+xml" }));
    try {
      await new Promise((done, failed) => Object.assign(image, {
        onload: done, onerror: () => failed(new Error("the picture could not be drawn")), src: address,
      }));
      const canvas = el("canvas", { width: image.width * SCALE, height: image.height * SCALE });
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      /** @type {Blob} */
      const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
      saveBlob(`${this.name}.png`, blob);
    } finally {
      URL.revokeObjectURL(address);
    }
  }
}

/**
 * Draw figures that stand in the page already: every width is read before the first is drawn, so that the browser lays
 * the page out once and not once for each.
 * @param {Figure[]} figures
 */
export function redrawAll(figures) {
  const rooms = figures.map((figure) => figure.frame.clientWidth);
  figures.forEach((figure, place) => figure.redraw(true, rooms[place]));
}

/**
 * A table. A column is {label, title?, text(row), node?(row), csv?: [[heading, value(row)], ...], number?}; `key(row)`
 * names a row in the page.
 * @template Row
 * @param {{ name: string, title: string, about?: string, columns: Column<Row>[], rows: Row[], key?: ((row: Row) => string) | null,
 *   caption?: string }} contents
 */
export function table({ name, title, about = "", columns, rows, key = null, caption = title }) {
  const head = heading(title, about);
  const markdown = () => asMarkdown(columns, rows);
  const box = el(
    "div.compare-figure-exports", { role: "group", "aria-label": `Export ${title}` }, copyButton(markdown, "Copy Markdown"),
    action("Markdown", () => save(`${name}.md`, markdown(), "text/markdown")),
    action("CSV", () => save(`${name}.csv`, csv(asData(columns, rows)), "text/csv")),
  );
  head.append(box);
  const body = el(
    "table.traces-table.compare-table-table", {}, el("caption.podium-offscreen", {}, caption), headOf(columns), bodyOf(columns, rows, key),
  );
  const frame =
    el("div.traces-frame.compare-table-frame", { tabindex: "0", role: "region", "aria-label": `${title}, scrolls sideways` }, body);
  return el("section.compare-figure.compare-table", { "data-table": name, "aria-label": title }, head, frame);
}

/**
 * @template Row
 * @param {Column<Row>[]} columns
 */
function headOf(columns) {
  const line = el("tr");
  for (const column of columns) line.append(el(
    "th", { class: column.number ? "compare-table-number" : "", scope: "col", ...(column.title ? { title: column.title } : {}) },
    column.label,
  ));
  return el("thead", {}, line);
}

/**
 * @template Row
 * @param {Column<Row>[]} columns
 * @param {Row[]} rows
 * @param {((row: Row) => string) | null} key
 */
function bodyOf(columns, rows, key) {
  const node = el("tbody");
  for (const row of rows) {
    const line = el("tr", key ? { "data-key": key(row) } : {});
    columns.forEach((column, place) => {
      const cell = el(
        place ? "td" : "th",
        { class: column.number ? "compare-table-number" : "", "data-name": column.label, ...(place ? {} : { scope: "row" }) },
        column.node ? column.node(row) : column.text(row),
      );
      line.append(cell);
    });
    node.append(line);
  }
  return node;
}

/**
 * @param {string} title
 * @param {string} [about]
 */
function heading(title, about) {
  const text = el("div.compare-figure-title", {}, el("h3", {}, title));
  if (about) text.append(el("p", {}, about));
  return el("header.compare-figure-head", {}, text);
}

/**
 * @param {string} label
 * @param {() => unknown} work
 */
function action(label, work) {
  const button = el("button.podium-link", { type: "button" }, label);
  button.addEventListener("click", work);
  return button;
}

// Files

/**
 * @template Row
 * @param {Column<Row>[]} columns
 * @param {Row[]} rows
 * @returns {Data}
 */
function asData(columns, rows) {
  /** @type {[string, (row: Row) => Cell][]} */
  const flat = columns.flatMap((column) => column.csv || [[column.label, column.text]]);
  return { columns: flat.map(([label]) => label), rows: rows.map((row) => flat.map(([, value]) => value(row))) };
}

/**
 * RFC 4180; a cell that a spreadsheet would take for a formula is quoted as text.
 * @param {Data} data
 */
function csv({ columns, rows }) {
  /** @param {Cell} value */
  const cell = (value) => {
    if (value === null || value === undefined) return "";
    if (typeof value === "number") return Number.isFinite(value) ? String(value) : "";
    const text = /^[=+\-@\t\r]/.test(String(value)) ? `'${value}` : String(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [columns, ...rows].map((line) => line.map(cell).join(",")).join("\r\n") + "\r\n";
}

/**
 * @template Row
 * @param {Column<Row>[]} columns
 * @param {Row[]} rows
 */
function asMarkdown(columns, rows) {
  /** @param {string[]} cells */
  const line = (cells) =>
    `| ${cells.map((text) => String(text).replaceAll("\\", "\\\\").replaceAll("|", "\\|").replaceAll(/\s*\n\s*/g, " ")).join(" | ")} |`;
  const rule = columns.map((column) => (column.number ? "---:" : "---"));
  const body = rows.map((row) => line(columns.map((column) => column.text(row))));
  return `${[line(columns.map((column) => column.label)), `|${rule.join("|")}|`, ...body].join("\n")}\n`;
}

/**
 * @param {SVGSVGElement} drawn
 * @param {string} title
 */
function standalone(drawn, title) {
  const copy = /** @type {SVGSVGElement} */ (drawn.cloneNode(true));
  const [from, to] = [[drawn, ...drawn.querySelectorAll("*")], [copy, ...copy.querySelectorAll("*")]];
  from.forEach((node, place) => {
    const style = getComputedStyle(node);
    to[place].setAttribute("style", STYLES.map((name) => `${name}:${style.getPropertyValue(name)}`).join(";"));
    to[place].removeAttribute("class");
  });
  const [x, y, width, height] = copy.getAttribute("viewBox").split(" ").map(Number);
  const [wide, tall] = [width + 2 * MARGIN, height + 2 * MARGIN + 22];
  copy.setAttribute("viewBox", `${x - MARGIN} ${y - MARGIN - 22} ${wide} ${tall}`);
  copy.setAttribute("width", String(wide));
  copy.setAttribute("height", String(tall));
  const page = getComputedStyle(document.body);
  const ground =
    svg("rect", { x: x - MARGIN, y: y - MARGIN - 22, width: wide, height: tall, fill: page.getPropertyValue("--podium-card").trim() });
  const name = svg("text", {
    x, y: y - 12, fill: page.getPropertyValue("--podium-ink").trim(), "font-family": "Inter, sans-serif", "font-size": 14,
    "font-weight": 650,
  });
  name.textContent = title;
  copy.prepend(ground, name);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  return new XMLSerializer().serializeToString(copy);
}

/**
 * @param {string} name
 * @param {string} text
 * @param {string} type
 */
function save(name, text, type) {
  saveBlob(name, new Blob([text], { type: `${type};charset=utf-8` }));
}

/**
 * @param {string} name
 * @param {Blob} blob
 */
function saveBlob(name, blob) {
  const link = el("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000); // a busy browser reads it late
}
