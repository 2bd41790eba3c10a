// The formats in which an episode leaves the studio. PNG is painted here, from the SVG that the server lays out.

import { getFile } from "./api.js";
import { el, saveFile } from "./dom.js";

const FORMATS = [
  ["trace.jsonl", "Events, JSON Lines"],
  ["session.jsonl", "Session for the Hub's trace viewer"],
  ["otlp.json", "OpenTelemetry spans (OTLP JSON)"],
  ["graph.svg", "Graph as SVG"],
  ["graph.graphml", "Graph as GraphML"],
  ["replay.html", "Page that replays it"],
];
const PNG_SCALE = 2;

/**
 * A folded list of downloads for an episode; `more` stands above them.
 * @param {string} episode
 * @param {HTMLElement[]} more
 */
export function exportMenu(episode, more = []) {
  for (const item of more) item.className = "export-menu-item";
  const list = el("div.export-menu-list");
  const address = `/api/episodes/${encodeURIComponent(episode)}/export/`;
  for (const [format, label] of FORMATS) list.append(el("a.export-menu-item", { href: address + format, download: "" }, label));
  const png = el("button.export-menu-item", { type: "button" }, "Graph as PNG");
  png.addEventListener("click", () => savePng(`${address}graph.svg`, `podium-${episode}.png`).catch((error) => (png.textContent =
    `PNG failed: ${error.message}`)));
  list.insertBefore(png, list.children[4]);
  list.prepend(...more);
  const menu = el("details.export-menu", { "data-testid": "export" }, el("summary.podium-link", {}, "Export"), list);
  menu.addEventListener("keydown", (event) => event.key === "Escape" && (menu.open = false));
  menu.addEventListener("focusout", ({ relatedTarget: next }) => {
    if (next instanceof Node && !menu.contains(next)) menu.open = false;
  });
  return menu;
}

/**
 * @param {string} address
 * @param {string} name
 */
async function savePng(address, name) {
  const picture = await decodeImage(await getFile(address));
  const canvas = document.createElement("canvas");
  canvas.width = picture.naturalWidth * PNG_SCALE;
  canvas.height = picture.naturalHeight * PNG_SCALE;
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
  if (!blob) throw new Error("the graph is too large for a picture; take the SVG");
  saveFile(name, blob);
}

/** @param {Blob} blob */
async function decodeImage(blob) {
  const picture = new Image();
  picture.src = URL.createObjectURL(blob);
  try {
    await picture.decode();
  } finally {
    URL.revokeObjectURL(picture.src);
  }
  return picture;
}
