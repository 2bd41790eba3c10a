// The Publish page: what goes to the Hub on the left, every file of it on the right before anything is sent, and how
// far publications are. Nothing leaves until "Publish" is pressed on a preview of exactly these choices.

import { getDocument, sendCommand } from "../lib/api.js";
import { Housekeeping } from "../lib/housekeeping.js";
import { Toast, plain } from "../lib/reply.js";
import { Drawer, attempt, busy, button, select } from "../lib/controls.js";
import { copyButton, count, el, heading, icon, recall, remember } from "../lib/dom.js";
import { textField } from "../lib/fields.js";
import { labelField } from "../lib/form.js";
import { ACTIONS } from "../lib/icons.js";
import { describeSteps } from "../lib/outcome.js";
import { needs } from "../lib/rights.js";
import { ownTexts } from "./texts.js";

/** @typedef {import("../lib/reply.js").Problem} Problem */
/** @typedef {import("../lib/form.js").ReadableField} ReadableField */

const POLL_MS = 1000;
/** @type {Record<string, [string, string, { visitors: string, static: boolean }]>} */
const WAYS = {
  static: [
    "Replay, plain page", "One HTML file with recorded runs. Needs no server, no key, no GPU.", { visitors: "replay", static: true },
  ],
  replay: ["Replay, Gradio Space", "The same recorded runs in a Gradio app.", { visitors: "replay", static: false }],
  own_key: [
    "Live, visitors' own keys", "Runs the orchestrator. Keys are used for their own runs and kept nowhere.",
    { visitors: "own_key", static: false },
  ],
  secrets: [
    "Live, the Space's secrets", "Runs the orchestrator on your keys, which become secrets of the Space. Visitors spend your money.",
    { visitors: "secrets", static: false },
  ],
};
/** @type {Record<string, string>} */
const KINDS = { done: "good", failed: "bad", interrupted: "bad", running: "running" };
/** @type {Record<string, string>} */
const STATES = { ready: "Ready", running: "Publishing", done: "Published", failed: "Failed", interrupted: "Interrupted" };

/** @param {HTMLElement} root */
export function mount(root) {
  new PublishPage(root).start();
}

class PublishPage {
  /** @param {HTMLElement} root */
  constructor(root) {
    /** @type {Set<string>} */
    this.take = new Set(); // workers whose files go along
    this.root = root;
    /** @type {Record<string, ReadableField>} */
    this.fields = {};
    this.way = "replay";
    this.drawn = ""; // the publications
    /** @type {import("../types").PreviewDocument & { publication: Record<string, any> } | null} */
    this.preview = null;
    this.edits = 0; // how often the choices have changed
    this.form = el("section.publish-card.publish-form", { "aria-label": "What to publish" });
    this.files = el("section.publish-card.publish-files", { "aria-label": "Preview" });
    this.list = el("section.publish-card.publish-list", { "aria-label": "Publications" });
    this.toast = new Toast();
    this.drawer = new Drawer();
    this.housekeeping = new Housekeeping(this.drawer, this.toast, () => this.load());
    const grid = el("div.publish-grid", {}, this.form, el("div.publish-side", {}, this.files, this.list));
    const page = el(
      "div.page-body.publish-page", {},
      heading("Publish", "Let other people try your pool: as a model with a demo (a Space) at the Hugging Face Hub, or as a plain web page."), grid,
      this.drawer.node, this.toast.node,
    );
    root.replaceChildren(page);
    this.empty();
    this.form.append(el("p.publish-mute", {}, "Loading …"));
    this.list.hidden = true;
  }

  async start() {
    const reply = await this.ask({ action: "open" });
    this.form.replaceChildren();
    this.form.hidden = !reply.ok;
    if (!reply.ok) return this.files.replaceChildren(el("p.page-problems", {}, plain(reply.problems)));
    this.build(reply);
    this.loadRuns();
    this.poll();
    return null;
  }

  /** @param {import("../lib/api.js").Command} request */
  ask(request) {
    return sendCommand("publish", request);
  }

  // The form

  /** @param {import("../types").PublishChoices} reply */
  build(reply) {
    const pool = select(
      reply.pools.map((name) => [name, name]), recall("pool") || reply.pools.find((name) => name === "starter") || reply.pools[0],
      () => {
        this.take.clear();
        this.onChoice();
      },
    );
    const names = [...reply.checkpoints, ...reply.policies];
    const preset = recall("orchestrator");
    if (preset && !names.some(([name]) => name === preset)) names.unshift([preset, preset]);
    const first = preset || (names.some(([name]) => name === reply.suggestion) ? reply.suggestion : names[0]?.[0]);
    const orchestrator = select(names, first, () => this.onChoice());
    this.fields.pool = valued(labelField("Pool", pool), pool);
    this.fields.orchestrator = valued(labelField("Orchestrator", orchestrator), orchestrator);
    this.fields.repo =
      textField({ label: "Repository", about: "NAME, or OWNER/NAME for an organisation; the model and the Space get this name." });
    this.fields.title = textField({ label: "Title", about: "Heading of the page; empty: the repository's name.", optional: true });
    const about = el("textarea", { rows: 3, maxlength: 2000 });
    this.fields.about = valued(labelField("About", about, "One paragraph for the page and the cards."), about);
    const hardware = select(reply.hardware.map((name) => [name, name]), "cpu-basic", () => this.stale());
    this.fields.hardware = valued(labelField("Hardware", hardware), hardware);
    const visibility = select([["private", "Private"], ["public", "Public"]], "private", () => this.stale());
    this.fields.visibility = valued(labelField("Visibility", visibility), visibility);
    const licence = select(reply.licences.map((name) => [name, name]), reply.licences[0], () => this.stale());
    this.fields.licence = valued(labelField("Licence", licence), licence);
    const login = reply.logged_in
      ? "Empty: the Hub's own login, which was found here."
      : "No login of the Hub was found here: run  hf auth login  or name a token.";
    this.fields.token = textField({ label: "Token", about: login, optional: true, placeholder: "env:HF_TOKEN or keyring:NAME" });
    const model = el("input", { type: "checkbox" });
    model.checked = true;
    const withModel = labelField("Publish the checkpoint as a model repository", model);
    withModel.node.classList.add("form-check");
    this.fields.with_model = { ...withModel, read: () => model.checked };
    this.general = el("div.form-general", { role: "alert" });
    this.luggage = el("fieldset.publish-luggage", {}, el("legend", {}, "Let files of this machine go along? Visitors can read them."));
    this.luggage.hidden = true;
    this.runs = el("div.publish-runs");
    this.previewing = needs(button("Preview every file", () => this.makePreview(), "page-primary"), "publish/preview");
    this.form.append(
      el("h2", {}, "What"), two(this.fields.pool, this.fields.orchestrator), this.fields.with_model.node,
      el("h2", {}, "What visitors may do"), this.ways(), this.luggage, el("h2", {}, "Recorded runs"), this.runs, el("h2", {}, "Where"),
      this.fields.repo.node, two(this.fields.visibility, this.fields.hardware), this.fields.licence.node, this.fields.token.node,
      el("h2", {}, "Words"), this.fields.title.node, this.fields.about.node, this.general, this.previewing,
    );
    this.form.addEventListener("input", () => this.stale());
    this.setWay(WAYS[recall("visitors")] ? recall("visitors") : "replay");
  }

  ways() {
    const group = el("div.publish-ways", { role: "radiogroup", "aria-label": "What visitors may do" });
    /** @type {Record<string, HTMLInputElement>} */
    this.radios = {};
    for (const [name, [title, line]] of Object.entries(WAYS)) {
      const radio = el("input", { type: "radio", name: "publish-way", value: name });
      radio.addEventListener("change", () => this.setWay(name));
      const label = el("label.publish-way", {}, radio, el("span", {}, el("b", {}, title), el("span", {}, line)));
      this.radios[name] = radio;
      group.append(label);
    }
    return group;
  }

  /** @param {string} name */
  setWay(name) {
    this.way = name;
    this.radios[name].checked = true;
    this.fields.hardware.node.querySelector("select").disabled = name === "static";
    this.stale();
  }

  onChoice() {
    this.stale();
    this.loadRuns();
  }

  /** Runs to tick; those that were found right, and starred ones, are ticked already. */
  async loadRuns() {
    const request = (this.request = Symbol());
    const reply = await this.ask({ action: "runs", pool: this.fields.pool.read(), orchestrator: this.fields.orchestrator.read() });
    if (request !== this.request) return;
    if (!reply.ok) return this.runs.replaceChildren(el("p.publish-mute", {}, plain(reply.problems)));
    this.drawLuggage(reply.luggage);
    if (!reply.runs.length) return this.runs.replaceChildren(el(
      "p.publish-mute", {}, "None yet. If the pool needs no other machine, a few are recorded for the preview; or run some queries first.",
    ));
    return this.runs.replaceChildren(...reply.runs.map((/** @type {import("../types").RunChoice} */ run) => {
      const box = el("input", { type: "checkbox", value: run.id });
      box.checked = run.shown;
      const verdict = run.correct === null ? "not verified" : run.correct ? "correct" : "wrong";
      return el(
        "label.publish-run", { "data-verdict": verdict }, box, el("span", {}, run.query),
        el("small", {}, `${verdict} · ${describeSteps(run.counts, "step")}`),
      );
    }));
  }

  /**
   * Workers that stay for their files alone: whether these go along is a person's choice.
   * @param {import("../types").LuggageDocument[]} offers
   */
  drawLuggage(offers) {
    this.luggage.hidden = !offers.length;
    const boxes = offers.map(({ worker, files, size }) => {
      const box = el("input", { type: "checkbox", value: worker });
      box.checked = this.take.has(worker);
      box.addEventListener("change", () => (box.checked ? this.take.add(worker) : this.take.delete(worker)));
      return el("label", {}, box, `${worker}: ${count(files)} ${files === 1 ? "file" : "files"}, ${bytes(size)}`);
    });
    this.luggage.replaceChildren(this.luggage.firstElementChild, ...boxes);
  }

  read() {
    /** @type {Record<string, any>} */
    const values = { ...WAYS[this.way][2] };
    for (const [name, field] of Object.entries(this.fields)) values[name] = field.read() ?? "";
    values.traces = [.../** @type {NodeListOf<HTMLInputElement>} */ (this.runs.querySelectorAll("input:checked"))].map((box) => box.value);
    values.take = [...this.take];
    return values;
  }

  /**
   * Say each problem at its field, and bring the first one to where the eye is.
   * @param {Problem[]} problems
   */
  show(problems) {
    for (const field of Object.values(this.fields)) field.say("");
    for (const [where, what] of problems) this.fields[where]?.say(what);
    this.general.textContent = plain(problems.filter(([where]) => !this.fields[where]));
    const wrong = Object.entries(this.fields).find(([name]) => problems.some(([where]) => where === name));
    if (!problems.length) return;
    const place = wrong ? wrong[1].node : this.general;
    place.scrollIntoView({ block: "nearest" });
    /** @type {HTMLElement | null} */ (wrong?.[1].node.querySelector("input, select, textarea"))?.focus({ preventScroll: true });
  }

  // The preview

  empty() {
    this.files.replaceChildren(
      el("h2", {}, "Preview"), el("p.publish-mute", {}, "Every file, its size, the app and the cards appear here before anything is sent."),
    );
  }

  /**
   * Nothing could be prepared: an older preview is not what these choices mean.
   * @param {Problem[]} problems
   */
  refuse(problems) {
    this.preview = null;
    this.show(problems);
    this.files.replaceChildren(el("h2", {}, "Preview"), el("p.form-general", {}, `Nothing was prepared: ${plain(problems)}`));
  }

  /** What was previewed is not what would be published any more. */
  stale() {
    this.edits += 1;
    if (!this.preview) return;
    this.preview = null;
    this.publishing.disabled = true;
    this.changed.hidden = false;
  }

  async makePreview() {
    this.show([]);
    const values = attempt(() => this.read());
    if (!values) return;
    const { edits } = this;
    const reply = await busy(this.previewing, "Preparing …", () => this.ask({ action: "preview", publication: values }));
    if (!reply.ok) return this.refuse(reply.problems);
    this.preview = { ...reply, publication: values };
    this.drawPreview();
    if (edits !== this.edits) this.stale(); // they changed while it was prepared
    if (reply.recorded) this.loadRuns();
  }

  drawPreview() {
    const { bundles, preview, secrets, runs, texts } = this.preview;
    const total = bundles.reduce((sum, bundle) => sum + bundle.size, 0);
    const words = el(
      "div", {}, el("h2", {}, "Preview"),
      el(
        "p.publish-mute", {},
        `${count(bundles.reduce((sum, bundle) => sum + bundle.files.length, 0))} files, ${bytes(total)}, ${runs} recorded runs. No secret was found in any of them.`,
      ),
    );
    this.publishing = needs(button("Publish", () => this.publish(), "page-primary"), "publish/publish");
    const head = el("header.publish-head", {}, words, this.publishing);
    this.changed = el("p.page-warning", {}, "The choices have changed: preview again.");
    this.changed.hidden = true;
    this.refusal = el("p.form-general", { role: "alert" });
    this.refusal.hidden = true;
    const links = el("p.publish-links");
    const page = `/api/publications/previews/${preview}.html`;
    if (runs) links.append(
      el("a.podium-link", { href: page, target: "_blank" }, "See the page"),
      el("a.podium-link", { href: `${page}?download=1`, download: "" }, "Download it as one HTML file"),
    );
    const { pool, orchestrator, take } = this.preview.publication;
    const query = new URLSearchParams([["pool", pool], ["orchestrator", orchestrator], ...take.map((/** @type {string} */ worker) => ["take", worker])]);
    const python = `/api/export/python?${query}`;
    if (!orchestrator.startsWith("oracle")) links.append(el("a.podium-link", { href: python, download: "" }, "Download as a Python file"));
    this.content = el("div.publish-content");
    this.files.replaceChildren(
      head, this.changed, this.refusal, links, ...ownTexts(texts, this.publishing, () => Boolean(this.preview)), ...secrets.map(secretLine),
      ...bundles.map((bundle) => this.bundle(bundle)), this.content,
    );
    this.look(bundles[0].kind, "README.md");
    this.files.scrollIntoView({ block: "start" });
    this.publishing.focus({ preventScroll: true });
  }

  /** @param {import("../types").BundleDocument} bundle */
  bundle({ kind, size, files, left_out: left }) {
    const box = el("details.publish-bundle");
    box.open = true;
    const summary =
      el("summary", {}, el("b", {}, kind === "space" ? "Space" : "Model"), el("span", {}, `${count(files.length)} files, ${bytes(size)}`));
    const list = el("div.publish-tree", { tabindex: "0", role: "group", "aria-label": `Files of the ${kind}` });
    for (const file of files) {
      const row = el(
        "button.publish-file", { type: "button", "data-file": `${kind}/${file.path}` }, el("span.publish-path", {}, file.path),
        el("small", {}, file.about), el("span.publish-size", {}, bytes(file.size)),
      );
      row.addEventListener("click", () => this.look(kind, file.path));
      list.append(row);
    }
    box.append(summary, list);
    if (left.length) {
      const out = el("ul.publish-left");
      for (const [what, why] of left) {
        out.append(el("li", {}, el("b", {}, what), ` ${why}`));
      }
      box.append(el("p.publish-left-head", {}, "Left out"), out);
    }
    return box;
  }

  /**
   * @param {string} kind
   * @param {string} path
   */
  async look(kind, path) {
    const reply = await this.ask({ action: "file", preview: this.preview?.preview || "", kind, path });
    if (!reply.ok) return this.content.replaceChildren(el("p.form-general", {}, plain(reply.problems)));
    for (const row of this.files.querySelectorAll(".publish-file"))
      row.setAttribute("aria-current", String(row.dataset.file === `${kind}/${path}`));
    const head = el("div.publish-content-head", {}, el("b", {}, `${kind}/${path}`), copyButton(reply.content));
    return this.content.replaceChildren(head, el("pre", { tabindex: "0" }, reply.content));
  }

  async publish() {
    const reply = await busy(this.publishing, "Starting …", () => this.ask({ action: "publish", publication: this.preview.publication }));
    this.publishing.disabled = !this.preview; // the choices may have changed meanwhile
    if (!reply.ok) return this.refusePublish(reply.problems);
    remember("publication", reply.key);
    await this.load();
    this.list.scrollIntoView({ block: "nearest" });
    return null;
  }

  /**
   * Say beside "Publish" why nothing was sent.
   * @param {Problem[]} problems
   */
  refusePublish(problems) {
    this.show(problems);
    this.refusal.textContent = plain(problems);
    this.refusal.hidden = false;
  }

  // Publications

  async poll() {
    await this.load();
    setTimeout(() => this.poll(), POLL_MS);
  }

  async load() {
    if (document.visibilityState !== "visible" && this.drawn) return;
    /** @type {{ publications?: import("../types").PublicationDocument[] }} */
    const { publications } = await getDocument("/api/publications").catch(() => ({}));
    const text = JSON.stringify(publications);
    if (!publications || text === this.drawn) return;
    this.drawn = text;
    const none = el("p.publish-mute", {}, "Nothing has been published from here yet.");
    this.list.hidden = false;
    const trash = button("Deleted", () => this.housekeeping.openTrash(["publication"]), "page-link");
    trash.dataset.key = "deleted-publications";
    const cards = publications.map((publication) => publicationCard(publication, this.housekeeping));
    this.list.replaceChildren(el("header.page-card-line", {}, el("h2", {}, "Publications"), trash), ...(cards.length ? cards : [none]));
  }
}

/**
 * @param {import("../types").PublicationDocument} publication
 * @param {Housekeeping} housekeeping
 */
function publicationCard({ key, repo, state, message, stages, links, visibility }, housekeeping) {
  const head = el(
    "div.publish-publication-head", {}, el("b", {}, repo),
    el(
      "span.traces-pill",
      {
        "data-kind": KINDS[state] || "odd",
        "data-testid": "publication-state",
      },
      STATES[state] || state,
    ),
  );
  if (state === "done") head.append(el("span.publish-mute", {}, visibility));
  for (const [label, href] of links)
    if (/^https?:\/\//.test(href)) head.append(el("a.podium-link", { href, target: "_blank", rel: "noopener" }, `Open the ${label}`));
  const open = () => housekeeping.open({ kind: "publication", name: key, label: repo });
  const remove = needs(button("Delete the record", open, "page-link"), "housekeeping/delete");
  remove.dataset.key = `delete-${key}`;
  head.append(remove);
  const box = el("article.publish-publication", { "data-state": state, "data-publication": key }, head);
  if (message) box.append(el("p.publish-message", {}, message));
  if (state !== "done") {
    const list = el("ol.publish-stages");
    for (const stage of stages) {
      const line =
        el("li", { "data-state": stage.state }, stage.state === "done" ? icon(ACTIONS.check) : el("i"), el("span", {}, stage.label));
      list.append(line);
    }
    box.append(list);
  }
  return box;
}

/** @param {import("../types").SecretDocument} secret */
function secretLine({ name, reference, workers, is_set: resolved }) {
  const words = resolved
    ? `becomes a secret of the Space, from ${reference}, for ${workers.join(", ")}.`
    : `is wanted by ${workers.join(", ")}, but ${reference} is not set on this machine.`;
  return el("p", { class: resolved ? "publish-secret" : "page-warning" }, el("code", {}, name), ` ${words}`);
}

/** @param {...ReadableField} fields */
function two(...fields) {
  return el("div.publish-two", {}, ...fields.map((field) => field.node));
}

/**
 * @param {import("../lib/form.js").LabelledField} field
 * @param {{ value: string }} input
 */
const valued = (field, input) => ({ ...field, read: () => input.value.trim() });

/** @param {number} size */
function bytes(size) {
  if (size < 1000) return `${size} B`;
  if (size < 1e6) return `${(size / 1e3).toFixed(1)} kB`;
  return size < 1e9 ? `${(size / 1e6).toFixed(1)} MB` : `${(size / 1e9).toFixed(2)} GB`;
}
