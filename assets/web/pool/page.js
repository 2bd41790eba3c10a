// The Pool page: its pools, its cards, and which dialog opens. Every command goes to the server, which answers
// with the new state or with problems by field. The dialogs are in files of their own, one story each.

import { askConflict } from "./conflict.js";
import { askConsent } from "./consent.js";
import { sendCommand } from "../lib/api.js";
import { Toast, plain } from "../lib/reply.js";
import { Drawer, button, select } from "../lib/controls.js";
import { count, el, heading, icon, recall, remember } from "../lib/dom.js";
import { ACTIONS } from "../lib/icons.js";
import { Housekeeping } from "../lib/housekeeping.js";
import { menu } from "../lib/menu.js";
import { needs } from "../lib/rights.js";
import { openBinding } from "./binding.js";
import { workerCard } from "./card.js";
import { Gallery } from "./gallery.js";
import { openMemory } from "./memory.js";
import { openTraining } from "./training.js";
import { openLimits, openMode, openManage, openNew } from "./settings.js";
import { openSkills } from "./skills.js";
import { openPoolFile } from "./imports.js";
import { pasteBox } from "./paste.js";
import { recallView, redrawOpenCard, viewSwitch, workerTable } from "./table.js";
import { openVersions } from "./versions.js";
import { testAll } from "./worker_test.js";

/** @typedef {import("../lib/api.js").Command} Command */

const MAX_CARDS = 60; // at first: a thousand cards have 40,000 elements and take seconds
const MORE_CARDS = 240;
const ROLES = [["all", "All"], ["agent", "Agents"], ["tool", "Tools"], ["recursion", "Recursion"]];

/** @param {HTMLElement} root */
export function mount(root) {
  new PoolPage(root).start();
}

export class PoolPage {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.role = "all";
    this.text = "";
    this.view = recallView();
    this.sort = { column: "", descending: false }; // of the table; "" is the pool's own order
    this.most = MAX_CARDS;
    this.moreShape = ""; // what the menu lists
    this.testingWords = ""; // how far "Test all" is
    /** @type {Map<string, { values: Record<string, any>, seen: string | null }>} */
    this.tried = new Map(); // what "Try it" was given last, by worker
    /** @type {Map<string, import("../types").WorkerTest>} */
    this.tests = new Map(); // what a test said, by worker
    this.linked = recall("worker"); // its card stands out
    this.facts = new Map(); // a track record by all stored runs, by worker
    this.bar = el("div.page-bar");
    this.note = el("div.page-note", { hidden: "" });
    this.orchestrators = el("section.pool-orchestrators", { "aria-label": "What can orchestrate this pool" });
    this.tools = el("div.page-tools");
    this.paste = pasteBox(this);
    this.grid = el("div.page-grid");
    this.drawer = new Drawer();
    this.gallery = new Gallery(this);
    this.toast = new Toast();
    this.housekeeping = new Housekeeping(this.drawer, this.toast, ({ name, gone }) => this.act({ action: "show", pool: gone ? null : name }));
    const page = this.root = el(
      "div.page-body.pool-page", {}, heading("Pool", "The tools and models that can answer parts of your question. An orchestrator plans which to call, and in what order."), this.bar,
      this.note, this.orchestrators, this.tools, this.paste, this.grid, this.drawer.node, this.toast.node,
    );
    root.replaceChildren(page);
  }

  async start() {
    await this.command({ action: "show", pool: recall("pool"), version: recall("version") });
    this.grid.querySelector(".pool-linked")?.scrollIntoView({ block: "center" });
    await this.checkLocal();
  }

  /** Lights come on by themselves, except for workers whose probe would leave this machine. */
  async checkLocal() {
    const pool = this.state?.pool;
    const unknown = (pool?.workers || []).some((worker) => worker.enabled && !worker.light.probe && !worker.remote && !worker.runs_program);
    if (!unknown || this.isOld()) return;
    const reply = await this.send({ action: "check_local", pool: pool.name });
    const same = this.state.pool?.name === pool.name && this.state.pool.version === pool.version;
    if (reply.state && same) this.take(reply.state);
  }

  /**
   * Send a command. Where it needs a person's consent, or has met another edit of the same, the person is asked, and
   * the command is sent again if they agree.
   * @param {Command} request
   * @returns {Promise<any>}
   */
  async send(request) {
    const reply = await sendCommand("pool", request);
    if (reply.ok) return reply;
    const name = request.name || request.worker?.name;
    if (reply.wants && (await askConsent(name, reply.wants))) return this.send({ ...request, confirmed: reply.wants });
    if (reply.conflict) {
      const more = await askConflict(reply.conflict);
      if (more) return this.send({ ...request, ...more });
    }
    return reply;
  }

  /**
   * Send a command; take the new state if there is one. Returns the reply. `based_on` names what the person saw: by
   * default what the page shows now; a form names what it was opened with.
   * @param {Command} request
   */
  async command(request) {
    const pool = this.state?.pool;
    const reply = await this.send({ pool: pool?.name, based_on: pool?.based_on, ...request });
    if (reply.state) this.take(reply.state);
    if (reply.message) this.say(reply.message);
    if (reply.state && request.action !== "show") this.checkLocal();
    return reply;
  }

  /**
   * A command whose problems have no field of their own.
   * @param {Command} request
   */
  async act(request) {
    const reply = await this.command(request);
    if (!reply.ok) this.say(plain(reply.problems), true);
    return reply;
  }

  /**
   * @param {string} text
   * @param {boolean} bad
   * @param {...[string, () => unknown]} actions
   */
  say(text, bad = false, ...actions) {
    this.toast.say(text, bad, ...actions);
  }

  /** @param {import("../types").PoolPageState} state */
  take(state) {
    const other = state.pool?.name !== this.state?.pool?.name;
    if (other) for (const results of [this.tests, this.facts]) results.clear();
    this.state = state;
    this.root.toggleAttribute("data-read-only", state.read_only);
    if (other) this.loadOrchestrators();
    remember("pool", state.pool?.name);
    remember("version", this.isOld() ? state.pool.version : null);
    const focused = document.activeElement?.dataset?.key;
    this.drawBar();
    this.drawTools();
    this.paste.hidden = !state.pool || this.isOld();
    this.drawGrid();
    if (focused && !this.drawer.node.open) document.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  }

  /** Say what can orchestrate the pool, and what a trained one scored. */
  async loadOrchestrators() {
    const pool = this.state.pool?.name;
    this.orchestrators.replaceChildren();
    if (!pool) return;
    const reply = await this.send({ action: "orchestrators", pool });
    if (reply.ok && this.state.pool?.name === pool) this.orchestrators.replaceChildren(...orchestratorParts(pool, reply.orchestrators));
  }

  isOld() {
    return this.state.pool && this.state.pool.version !== this.state.pool.current;
  }

  /** @param {string} name */
  worker(name) {
    return this.state.pool.workers.find((worker) => worker.name === name);
  }

  /** @param {number | null} version */
  show(version = null) {
    return this.act({ action: "show", version });
  }

  drawBar() {
    const { pools, pool } = this.state;
    const picker = select(pools.map((name) => [name, name]), pool?.name, async (name) => {
      await this.act({ action: "show", pool: name });
      this.checkLocal();
    });
    picker.setAttribute("aria-label", "Pool");
    this.bar.replaceChildren(setKey(picker, "pool"));
    if (pool) {
      this.bar.append(
        setKey(button(`Version ${pool.version}`, () => openVersions(this), "page-version"), "versions"),
        setKey(needs(button(`Mode: ${pool.mode.name}`, () => openMode(this)), "pool/save_mode"), "mode"),
        setKey(el("a.page-button", { href: `/?pool=${encodeURIComponent(pool.name)}` }, "Run"), "run"),
        setKey(needs(button("Train on this pool", () => openTraining(this)), "pool/train_on_pool"), "train"),
      );
    }
    this.bar.append(this.keepMore(), setKey(needs(button("New pool", () => openNew(this)), "pool/create"), "new"));
    if (pool && !this.isOld()) {
      const add = setKey(needs(button("", () => this.gallery.open(), "page-primary pool-add-top"), "pool/add_template"), "add-top");
      add.append(icon(ACTIONS.plus), "Add worker");
      this.bar.append(add);
    }
    const limit = this.explainLimit();
    this.note.replaceChildren(...(limit && !this.isOld() ? [el("span", {}, limit)] : []));
    this.note.hidden = !this.isOld() && !limit;
    if (this.isOld()) {
      this.note.append(
        el("span", {}, `You are looking at version ${pool.version}; version ${pool.current} is current.`),
        button("What changed since", () => openVersions(this, pool.version, pool.current)),
        // The edit is of the current version, which this one replaces.
        needs(button("Restore this version", () => this.act({ action: "restore", version: pool.version, based_on: pool.current_hash })), "pool/restore"),
        button("Back to the current one", () => this.show()),
      );
    }
  }

  /** The menu of what is needed now and then. It stays while it lists the same: what arrives late must not close it. */
  keepMore() {
    const { pool } = this.state;
    const shape = JSON.stringify([pool?.name, pool?.version, pool?.limits.memory]);
    if (shape !== this.moreShape) {
      this.moreShape = shape;
      this.more = menu("More", this.listMore());
      setKey(this.more.toggle, "more");
    }
    return this.more.root;
  }

  listMore() {
    const { pool } = this.state;
    const own = pool
      ? [
        needs(button("Limits", () => openLimits(this)), "pool/save_limits"),
        button(pool.limits.memory === "off" ? "Memory" : "Memory on", () => openMemory(this)),
        button("Plan skills", () => openSkills(this)),
        button("Binding", () => openBinding(this)),
        needs(button("Rename or delete", () => openManage(this)), "pool/rename_pool"),
        el("a", { href: `/api/pools/${encodeURIComponent(pool.name)}?version=${pool.version}`, download: "" }, "Export"),
      ]
      : [];
    return [...own, needs(button("Import", () => openPoolFile(this)), "pool/import"), button("Deleted pools", () => this.housekeeping.openTrash(["pool"]))];
  }

  /** Why this person changes nothing here; "" when they may. */
  explainLimit() {
    if (this.state.role === "viewer") return "You are a viewer: you look at pools, and an editor or an owner changes them.";
    return this.state.pool && this.state.read_only && this.state.role === "editor"
      ? "This pool is shared read-only: run it, or copy it with New pool. Only owners change it."
      : "";
  }

  drawTools() {
    const workers = this.state.pool?.workers || [];
    const chips = el("div.page-chips", { role: "group", "aria-label": "Show" });
    for (const [role, label] of ROLES) {
      const number = role === "all" ? workers.length : workers.filter((worker) => worker.role === role).length;
      const chip = button(`${label} ${number}`, () => {
        this.role = role;
        this.drawTools();
        this.drawGrid();
        this.tools.querySelector(`[data-key="role-${role}"]`).focus();
      }, "page-chip");
      chip.setAttribute("aria-pressed", String(this.role === role));
      chips.append(setKey(chip, `role-${role}`));
    }
    const search =
      el("input.page-search", { type: "search", placeholder: "Search workers", "aria-label": "Search workers", "data-key": "search" });
    search.value = this.text;
    search.addEventListener("input", () => {
      this.text = search.value.toLowerCase();
      this.drawGrid();
    });
    this.testing = setKey(needs(button("Test all", () => testAll(this)), "pool/test_worker"), "test-all");
    this.testing.title = "Call each worker that is switched on once with a sample input; those whose calls may change something are probed";
    const offersTests = workers.some((worker) => worker.enabled) && !this.isOld();
    this.tools.replaceChildren(chips, el("div.pool-find", {}, viewSwitch(this), search, ...(offersTests ? [this.testing] : [])));
    this.showTesting(this.testingWords);
  }

  /**
   * How far "Test all" is, on its button; "" when it is not at work.
   * @param {string} words
   */
  showTesting(words) {
    this.testingWords = words;
    this.testing.textContent = words || "Test all";
    this.testing.disabled = Boolean(words);
  }

  drawGrid() {
    const focused = document.activeElement?.dataset?.key;
    const workers = (this.state.pool?.workers || []).filter(
      (worker) =>
        (this.role === "all" || worker.role === this.role) &&
        `${worker.name} ${worker.description} ${worker.label}`.toLowerCase().includes(this.text),
    );
    const isTable = this.view === "table" && workers.length > 0;
    this.grid.replaceChildren(...(isTable ? [workerTable(this, workers)] : this.drawCards(workers)));
    if (this.state.pool && !this.isOld() && !isTable) this.grid.append(this.addCard());
    redrawOpenCard(this);
    if (focused) this.grid.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  }

  /**
   * The cards of the first workers, as far as the linked one, and what shows more.
   * @param {import("../types").WorkerCard[]} workers
   */
  drawCards(workers) {
    const linked = workers.findIndex((worker) => worker.name === this.linked);
    const shown = workers.slice(0, Math.max(this.most, linked + 1));
    const left = workers.length - shown.length;
    /** @type {HTMLElement[]} */
    const cards = shown.map((worker) => workerCard(this, worker));
    return left > 0 ? [...cards, this.moreCard(Math.min(left, MORE_CARDS), left)] : cards;
  }

  /**
   * @param {number} next
   * @param {number} left
   */
  moreCard(next, left) {
    const more = setKey(button("", () => {
      this.most += MORE_CARDS;
      this.drawGrid();
    }, "page-add"), "more-cards");
    more.append(el("b", {}, `Show ${count(next)} more`), el("span", {}, `${count(left)} are not shown. Search finds them, too.`));
    return more;
  }

  addCard() {
    const add = setKey(needs(button("", () => this.gallery.open(), "page-add"), "pool/add_template"), "add");
    const plus = el("span.page-plus", {}, icon(ACTIONS.plus));
    add.append(
      plus, el("b", {}, "Add a worker"),
      el("span", {}, "A model, a role agent, a tool, or what an MCP server, an API or a function offers"),
    );
    return add;
  }
}

/**
 * @template {HTMLElement} Node
 * @param {Node} node
 * @param {string} key
 */
function setKey(node, key) {
  node.dataset.key = key;
  return node;
}

/**
 * @param {string} pool
 * @param {import("../types").OrchestratorLine[]} lines
 */
function orchestratorParts(pool, lines) {
  if (!lines.length) return [el("h2", {}, "Nothing can orchestrate this pool yet"), el("p", {}, "Add a chat model, or train on this pool.")];
  const list = el("ul");
  for (const { name, label, about, job } of lines) {
    const run = el(
      "a.podium-link", { href: `/?${new URLSearchParams({ pool, orchestrator: name })}`, "aria-label": `Run with ${label}` }, "Run",
    );
    const more = job ? el("a.podium-link", { href: `/train?job=${encodeURIComponent(job)}` }, "Training") : "";
    list.append(el("li", {}, el("b", {}, label), el("span", {}, about), run, more));
  }
  return [el("h2", {}, "What can orchestrate it"), list];
}
