// The versions of a pool: what each changed, two of them side by side, and going back to one.

import { plain } from "../lib/reply.js";
import { button, select } from "../lib/controls.js";
import { el, icon } from "../lib/dom.js";
import { ACTIONS } from "../lib/icons.js";
import { needs } from "../lib/rights.js";

/** @typedef {import("./page.js").PoolPage} PoolPage */

/** @type {Record<string, string>} */
const CHANGES = { added: ACTIONS.plus, removed: ACTIONS.minus, changed: ACTIONS.pencil };

/**
 * All versions; with `before` and `after` their difference is shown at once.
 * @param {PoolPage} page
 * @param {number | null} before
 * @param {number | null} after
 */
export function openVersions(page, before = null, after = null) {
  const { versions, current, name } = page.state.pool;
  const list = el("ol.page-versions");
  for (const version of versions) list.append(entry(page, version, current));
  const lead = el("p.page-lead", {}, "A version never changes. Every run and checkpoint remembers the one it used.");
  const parts = /** @type {HTMLElement[]} */ ([lead]);
  if (versions.length > 1)
    parts.push(comparison(page, versions, before ?? versions[1].version, after ?? versions[0].version, before !== null));
  page.drawer.open(`Versions of ${name}`, [...parts, list], { wide: true });
}

/**
 * @param {PoolPage} page
 * @param {import("../types").VersionLine} version
 * @param {number} current
 */
function entry(page, version, current) {
  const view = button(`Version ${version.version}`, async () => {
    await page.show(version.version);
    page.drawer.close();
  }, "page-link");
  const line =
    el("div.page-version-line", {}, view, el("span", {}, new Date(version.created_at).toLocaleString()), el("code", {}, version.hash));
  if (version.version === current) line.append(el("span.page-tag", {}, "current"));
  return el("li", {}, line, el("p", {}, `${version.changes} · ${version.workers} workers`));
}

/**
 * @param {PoolPage} page
 * @param {import("../types").VersionLine[]} versions
 * @param {number} before
 * @param {number} after
 * @param {boolean} atOnce
 */
function comparison(page, versions, before, after, atOnce) {
  const options = versions.map((version) => [String(version.version), `Version ${version.version}`]);
  const from = select(options, String(before), () => compare());
  const to = select(options, String(after), () => compare());
  from.setAttribute("aria-label", "Compare version");
  to.setAttribute("aria-label", "with version");
  const out = el("div.pool-version-out", { "aria-live": "polite" });
  const compare = async () => {
    const reply = await page.command({ action: "compare", before: from.value, after: to.value });
    out.replaceChildren(
      ...(reply.ok ? difference(page, reply.diff, Number(from.value)) : [el("p.form-general", {}, plain(reply.problems))]),
    );
  };
  const row = el(
    "div.pool-version-row", {}, el("span", {}, "Compare"), from, el("span", {}, "with"), to,
    button("Show the differences", compare, "page-button"),
  );
  const box = el("section.pool-version", { "aria-label": "Compare two versions" }, row, out);
  if (atOnce) compare();
  return box;
}

/**
 * @param {PoolPage} page
 * @param {import("../types").VersionDifference} diff
 * @param {number} before
 */
function difference(page, diff, before) {
  const parts = [];
  for (const worker of diff.workers) parts.push(workerDifference(worker));
  if (diff.pool.length) parts.push(changeBox("Pool", "changed", diff.pool));
  if (!parts.length) parts.push(el("p.page-lead", {}, "These two versions hold the same."));
  const { current, current_hash: basedOn } = page.state.pool;
  if (before !== current) {
    const restore = needs(button(`Restore version ${before}`, async () => {
      const reply = await page.act({ action: "restore", version: before, based_on: basedOn });
      if (reply.ok) page.drawer.close();
    }, "page-primary"), "pool/restore");
    const row = el("div.pool-version-restore", {}, restore);
    parts.push(row);
  }
  return parts;
}

/** @param {import("../types").WorkerDifference} worker */
function workerDifference(worker) {
  if (worker.change === "changed") return changeBox(worker.name, "changed", worker.fields);
  const box = head(worker.name, worker.change);
  box.append(el("p.pool-version-about", {}, worker.about));
  return box;
}

/**
 * @param {string} name
 * @param {string} change
 * @param {import("../types").FieldDifference[]} fields
 */
function changeBox(name, change, fields) {
  const box = head(name, change);
  const top = el("tr", {}, ...["Field", "Before", "After"].map((word) => el("th", { scope: "col" }, word)));
  const table = el("table.pool-version-table", {}, el("thead"), el("tbody"));
  table.tHead.append(top);
  for (const field of fields) {
    const line = el("tr", {}, el("th", { scope: "row" }, field.field), value(field.before, "before"), value(field.after, "after"));
    table.tBodies[0].append(line);
  }
  box.append(table);
  return box;
}

/**
 * @param {string | null} text
 * @param {"before" | "after"} side
 */
function value(text, side) {
  const cell = el("td", { class: `pool-version-${side}`, "data-name": side === "before" ? "Before" : "After" });
  if (text === null) cell.append(el("span.pool-version-none", {}, "not set"));
  else cell.append(el(side === "before" ? "del" : "ins", {}, text));
  return cell;
}

/**
 * @param {string} name
 * @param {string} change
 */
function head(name, change) {
  const line = el("div.pool-version-head", {}, icon(CHANGES[change]), el("h3", {}, name), el("span", {}, change));
  return el("section.pool-version-worker", { "data-change": change, "data-name": name, "aria-label": `${name}: ${change}` }, line);
}
