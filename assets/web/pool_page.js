// The Pool page: cards of workers, a drawer with forms, versions. Every command goes to the server, which
// answers with the new state or with problems by field.

import { count, dollars, el, icon, readable, recall, remember, seconds } from "./dom.js";
import { Form, labelled } from "./form.js";
import { ACTIONS, STATUSES, kindIcon } from "./icons.js";

const MAX_POOL_FILE_BYTES = 4_000_000; // as in pool_registry/pool.py
const ROLES = [["all", "All"], ["agent", "Agents"], ["tool", "Tools"], ["recursion", "Recursion"]];

export function mount(root, send) {
  new PoolPage(root, send).start();
}

class PoolPage {
  constructor(root, send) {
    this.send = send;
    this.role = "all";
    this.text = "";
    this.tried = new Map();
    this.bar = el("div", "pp-bar");
    this.note = el("div", "pp-note");
    this.tools = el("div", "pp-tools");
    this.grid = el("div", "pp-grid");
    this.drawer = el("dialog", "pp-drawer");
    this.toast = el("div", "pp-toast", null, { role: "status" });
    const page = el("div", "pp");
    page.append(heading(), this.bar, this.note, this.tools, this.grid, this.drawer, this.toast);
    root.replaceChildren(page);
    this.drawer.addEventListener("click", (event) => {
      if (event.target === this.drawer) this.drawer.close();
    });
  }

  async start() {
    await this.command({ action: "show", pool: recall("pool"), version: recall("version") });
    await this.checkLocal();
  }

  /** Lights come on by themselves, except for workers whose probe would leave this machine. */
  async checkLocal() {
    const pool = this.state?.pool;
    const unknown = (pool?.workers || []).some((worker) => worker.enabled && !worker.health && !worker.remote);
    if (!unknown || this.isOld()) return;
    const reply = await this.send({ action: "check_local", pool: pool.name }).catch(() => ({}));
    const same = this.state.pool?.name === pool.name && this.state.pool.version === pool.version;
    if (reply.state && same) this.take(reply.state);
  }

  /** Send a command; take the new state if there is one. Returns the reply. */
  async command(request) {
    let reply;
    try {
      reply = await this.send(request);
    } catch (error) {
      reply = { ok: false, problems: [["", `The studio did not answer: ${error.message || error}`]] };
    }
    if (reply.state) this.take(reply.state);
    if (reply.said) this.say(reply.said);
    if (reply.state && request.action !== "show") this.checkLocal();
    return reply;
  }

  /** A command whose problems have no field of their own. */
  async act(request) {
    const reply = await this.command({ pool: this.state.pool?.name, ...request });
    if (!reply.ok) this.say(reply.problems.map(([, what]) => what).join("; "), true);
    return reply;
  }

  say(text, bad = false) {
    this.toast.textContent = text;
    this.toast.classList.toggle("pp-bad", bad);
    this.toast.classList.add("pp-shown");
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.toast.classList.remove("pp-shown"), bad ? 8000 : 3500);
  }

  take(state) {
    this.state = state;
    remember("pool", state.pool?.name);
    remember("version", this.isOld() ? state.pool.version : null);
    this.drawBar();
    this.drawTools();
    this.drawGrid();
  }

  isOld() {
    return this.state.pool && this.state.pool.version !== this.state.pool.current;
  }

  drawBar() {
    const { pools, pool } = this.state;
    const picker = select(pools.map((name) => [name, name]), pool?.name, async (name) => {
      await this.act({ action: "show", pool: name });
      this.checkLocal();
    });
    picker.setAttribute("aria-label", "Pool");
    this.bar.replaceChildren(picker);
    if (pool) {
      this.bar.append(
        button(`Version ${pool.version}`, () => this.openVersions(), "pp-version"),
        button("Limits", () => this.openLimits()),
        el("a", "pp-button", "Export", { href: `/api/pools/${encodeURIComponent(pool.name)}?version=${pool.version}`, download: "" }),
      );
    }
    this.bar.append(button("Import", () => this.openImport()), button("New pool", () => this.openNew()));
    this.note.replaceChildren();
    this.note.hidden = !this.isOld();
    if (this.isOld()) {
      this.note.append(
        el("span", "", `You are looking at version ${pool.version}; version ${pool.current} is current.`),
        button("Restore this version", () => this.act({ action: "restore", version: pool.version })),
        button("Back to the current one", () => this.act({ action: "show", pool: pool.name })),
      );
    }
  }

  drawTools() {
    const workers = this.state.pool?.workers || [];
    const chips = el("div", "pp-chips", null, { role: "group", "aria-label": "Show" });
    for (const [role, label] of ROLES) {
      const number = role === "all" ? workers.length : workers.filter((worker) => worker.role === role).length;
      const chip = button(`${label} ${number}`, () => {
        this.role = role;
        this.drawTools();
        this.drawGrid();
      }, "pp-chip");
      chip.setAttribute("aria-pressed", String(this.role === role));
      chips.append(chip);
    }
    const search = el("input", "pp-search", null, { type: "search", placeholder: "Search workers", "aria-label": "Search workers" });
    search.value = this.text;
    search.addEventListener("input", () => {
      this.text = search.value.toLowerCase();
      this.drawGrid();
    });
    this.tools.replaceChildren(chips, search);
  }

  drawGrid() {
    const focused = document.activeElement?.dataset?.key;
    const workers = (this.state.pool?.workers || []).filter(
      (worker) =>
        (this.role === "all" || worker.role === this.role) &&
        `${worker.name} ${worker.description} ${worker.label}`.toLowerCase().includes(this.text),
    );
    this.grid.replaceChildren(...workers.map((worker) => this.card(worker)));
    if (this.state.pool && !this.isOld()) this.grid.append(this.addCard());
    if (focused) this.grid.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  }

  card(worker) {
    const card = el("article", "pp-card", null, { "data-name": worker.name, "data-role": worker.role });
    card.classList.toggle("pp-off", !worker.enabled);
    const head = el("div", "pp-card-head");
    const badge = el("span", "pp-badge");
    badge.append(icon(kindIcon(worker.kind, worker.role)));
    const title = el("div", "pp-card-title");
    title.append(el("h2", "", worker.name), el("span", "", worker.label));
    head.append(badge, title, this.toggle(worker));
    const figures = el("dl", "pp-figures");
    for (const [name, value] of cardFigures(worker)) {
      const pair = el("div");
      pair.append(el("dt", "", name), el("dd", "", value));
      figures.append(pair);
    }
    card.append(head, health(worker), el("p", "pp-about", worker.description));
    if (worker.kind === "extractor") card.append(el("p", "pp-stand-in", "Rule-based: stands in for an LLM reader."));
    if (worker.points_at) card.append(el("code", "pp-points", worker.points_at));
    card.append(figures, this.cardActions(worker));
    return card;
  }

  toggle(worker) {
    const label = `${worker.enabled ? "Disable" : "Enable"} ${worker.name}`;
    const toggle = el("button", "pp-toggle", null, { type: "button", role: "switch", "aria-checked": String(worker.enabled), "aria-label": label, "data-key": `toggle-${worker.name}` });
    toggle.disabled = this.isOld();
    toggle.addEventListener("click", () => this.act({ action: "set_enabled", name: worker.name, enabled: !worker.enabled }));
    return toggle;
  }

  cardActions(worker) {
    const row = el("div", "pp-actions");
    const add = (label, path, work) => {
      const node = button("", work, "pp-action");
      node.append(icon(path), label);
      node.dataset.key = `${label}-${worker.name}`;
      node.setAttribute("aria-label", `${label} ${worker.name}`);
      row.append(node);
    };
    add("Try it", ACTIONS.play, () => this.openTry(worker));
    add("Check", ACTIONS.pulse, (event) => this.check(worker, event.currentTarget));
    if (this.isOld()) return row;
    add("Edit", ACTIONS.pencil, () => this.openWorker(worker, worker.name));
    add("Clone", ACTIONS.copy, () => this.openWorker({ ...worker, name: `${worker.name}-copy`.slice(0, 48) }, null));
    add("Remove", ACTIONS.trash, () => this.openRemove(worker));
    return row;
  }

  async check(worker, node) {
    node.disabled = true;
    node.classList.add("pp-busy");
    await this.act({ action: "check_worker", name: worker.name });
    await this.act({ action: "show", pool: this.state.pool.name, version: this.isOld() ? this.state.pool.version : null });
  }

  addCard() {
    const add = button("", () => this.openKinds(), "pp-add");
    const plus = el("span", "pp-plus");
    plus.append(icon(ACTIONS.plus));
    add.append(plus, el("b", "", "Add worker"), el("span", "", "A tool, a chat model, a local model, or another orchestrator"));
    return add;
  }

  // The drawer

  open(title, ...parts) {
    const head = el("header", "pp-drawer-head");
    const close = button("", () => this.drawer.close(), "pp-close");
    close.append(icon(ACTIONS.cross));
    close.setAttribute("aria-label", "Close");
    head.append(el("h2", "", title), close);
    this.drawer.replaceChildren(head, ...parts);
    this.drawer.setAttribute("aria-label", title);
    if (!this.drawer.open) this.drawer.showModal();
  }

  openKinds() {
    const list = el("div", "pp-kinds");
    for (const kind of this.state.kinds) {
      const entry = button("", () => this.openWorker({ kind: kind.name, config: {}, enabled: true }, null), "pp-kind");
      entry.dataset.role = kind.role;
      const badge = el("span", "pp-badge");
      badge.append(icon(kindIcon(kind.name, kind.role)));
      const text = el("span", "pp-kind-text");
      text.append(el("b", "", kind.label), el("span", "", kind.summary));
      entry.append(badge, text);
      list.append(entry);
    }
    this.open("Add a worker", list);
  }

  openWorker(worker, replacing) {
    const kind = this.state.kinds.find((each) => each.name === worker.kind);
    const common = new Form({ properties: COMMON, required: ["name", "description"] }, worker);
    const config = new Form(kind.schema, worker.config);
    const advanced = new Form(this.state.advanced_schema, worker);
    const more = el("details", "pp-more");
    more.append(el("summary", "", "Time-out, retries, prices"), advanced.root);
    const general = el("div", "fm-general", "", { role: "alert" });
    const draft = () => ({ ...common.read(), ...advanced.read(), kind: kind.name, enabled: worker.enabled, config: config.read() });
    const show = (problems) => {
      const own = problems.filter(([where]) => where.startsWith("config.")).map(([where, what]) => [where.slice(7), what]);
      const rest = [...config.show(own), ...advanced.show(common.show(problems.filter(([where]) => !where.startsWith("config."))))];
      if (advanced.root.querySelector(".fm-wrong")) more.open = true;
      general.textContent = rest.map(([, what]) => what).join("; ");
      this.drawer.querySelector(".fm-wrong input, .fm-wrong textarea")?.focus();
    };
    const save = async () => {
      const document = attempt(draft);
      if (!document) return;
      const reply = await this.command({ action: "save_worker", pool: this.state.pool.name, replacing, worker: document });
      if (reply.ok) this.drawer.close();
      else show(reply.problems);
    };
    const configPart = Object.keys(kind.schema.properties || {}).length ? [el("h3", "", kind.label), config.root] : [];
    const foot = el("div", "pp-drawer-foot");
    foot.append(button("Cancel", () => this.drawer.close()), button(replacing ? "Save" : "Add worker", save, "pp-primary"));
    this.open(replacing ? `Edit ${replacing}` : `Add: ${kind.label}`, el("p", "pp-lead", kind.summary), common.root, ...configPart, more, general, foot);
  }

  openRemove(worker) {
    const foot = el("div", "pp-drawer-foot");
    const remove = async () => {
      const reply = await this.act({ action: "remove_worker", name: worker.name });
      if (reply.ok) this.drawer.close();
    };
    foot.append(button("Keep it", () => this.drawer.close()), button(`Remove ${worker.name}`, remove, "pp-danger"));
    this.open(`Remove ${worker.name}?`, el("p", "pp-lead", "The new version of the pool will not have this worker. Earlier versions and past runs keep it."), foot);
  }

  async openTry(worker) {
    const opened = await this.act({ action: "try_worker", worker });
    if (!opened.ok) return;
    const known = this.tried.get(worker.name) || { values: opened.sample, seen: opened.seen };
    const form = new Form(opened.parameters, known.values);
    const seen = Object.assign(el("textarea", "", null, { rows: "3" }), { value: known.seen ?? "" });
    const sees = labelled("It may see", seen, "The output of an earlier step; leave it empty for none.").node;
    sees.hidden = opened.seen === null;
    const out = el("div", "pp-out", null, { "aria-live": "polite" });
    const call = async (event) => {
      const values = attempt(() => form.read());
      if (!values) return;
      this.tried.set(worker.name, { values, seen: seen.value });
      const node = event.currentTarget;
      node.disabled = true;
      out.replaceChildren(el("p", "pp-lead", "Calling …"));
      const reply = await this.act({ action: "try_worker", worker, arguments: values, seen: seen.value });
      node.disabled = false;
      out.replaceChildren(...(reply.observation ? observed(reply.observation) : []));
    };
    const foot = el("div", "pp-drawer-foot");
    foot.append(button("Close", () => this.drawer.close()), button("Call it", call, "pp-primary"));
    this.open(`Try ${worker.name}`, el("p", "pp-lead", worker.description), form.root, sees, out, foot);
  }

  openVersions() {
    const list = el("ol", "pp-versions");
    for (const each of this.state.pool.versions) {
      const entry = el("li");
      const line = el("div", "pp-version-line");
      const view = button(`Version ${each.version}`, async () => {
        await this.act({ action: "show", version: each.version });
        this.drawer.close();
      }, "pp-link");
      line.append(view, el("span", "", new Date(each.created_at).toLocaleString()), el("code", "", each.hash));
      if (each.version === this.state.pool.current) line.append(el("span", "pp-tag", "current"));
      entry.append(line, el("p", "", `${each.changes} · ${each.workers} workers`));
      list.append(entry);
    }
    this.open(`Versions of ${this.state.pool.name}`, el("p", "pp-lead", "A version never changes. Every run and checkpoint remembers the one it used."), list);
  }

  openLimits() {
    const form = new Form(this.state.limits_schema, this.state.pool.limits);
    const general = el("div", "fm-general", "", { role: "alert" });
    const save = async () => {
      const limits = attempt(() => form.read());
      if (!limits) return;
      const reply = await this.command({ action: "save_limits", pool: this.state.pool.name, limits });
      if (reply.ok) this.drawer.close();
      else general.textContent = form.show(reply.problems).map(([, what]) => what).join("; ");
    };
    const foot = el("div", "pp-drawer-foot");
    foot.append(button("Cancel", () => this.drawer.close()), button("Save limits", save, "pp-primary"));
    this.open("Limits", el("p", "pp-lead", "Every episode on this pool stays within these, always."), form.root, general, foot);
  }

  openImport() {
    const file = el("input", "", null, { type: "file", accept: ".json,application/json" });
    const text = el("textarea", "fm-code", null, { rows: "10", spellcheck: "false", placeholder: '{"podium_pool": 1, ...}' });
    const name = el("input", "", null, { type: "text", placeholder: "as in the file" });
    const fields = { text: labelled("Pool as JSON", text), name: labelled("Name", name, "Change it when the name is taken.") };
    const problems = el("ul", "pp-problems", null, { role: "alert" });
    file.addEventListener("change", async () => {
      const chosen = file.files[0];
      if (!chosen) return;
      const fits = chosen.size <= MAX_POOL_FILE_BYTES;
      text.value = fits ? await chosen.text() : "";
      problems.replaceChildren(...(fits ? [] : [el("li", "", `${chosen.name} has ${count(chosen.size)} bytes; a pool may have ${count(MAX_POOL_FILE_BYTES)}`)]));
    });
    const load = async () => {
      const reply = await this.command({ action: "import", text: text.value, name: name.value.trim() });
      if (reply.ok) return this.drawer.close();
      problems.replaceChildren(...reply.problems.map(([where, what]) => el("li", "", where ? `${where}: ${what}` : what)));
      return null;
    };
    const foot = el("div", "pp-drawer-foot");
    foot.append(button("Cancel", () => this.drawer.close()), button("Import", load, "pp-primary"));
    this.open("Import a pool", labelled("File", file).node, fields.text.node, fields.name.node, problems, foot);
  }

  openNew() {
    const name = el("input", "", null, { type: "text", autocomplete: "off" });
    const field = labelled("Name", name, "a-z, 0-9, _ and -");
    const copy = select([["", "empty"], ...this.state.pools.map((each) => [each, `a copy of ${each}`])], "", () => {});
    const create = async () => {
      const reply = await this.command({ action: "create", name: name.value.trim(), copy_of: copy.value });
      if (reply.ok) this.drawer.close();
      else field.say(reply.problems.map(([, what]) => what).join("; "));
    };
    const foot = el("div", "pp-drawer-foot");
    foot.append(button("Cancel", () => this.drawer.close()), button("Create", create, "pp-primary"));
    this.open("New pool", field.node, labelled("Start with", copy).node, foot);
  }
}

const COMMON = {
  name: { type: "string", title: "Name", description: "What plans call it: a-z, 0-9, _ and -." },
  description: { type: "string", title: "Description", maxLength: 2000, description: "One or two sentences; the orchestrator reads them." },
};

function heading() {
  const box = el("header", "pd-heading");
  const text = el("div");
  text.append(el("h1", "", "Pool"), el("p", "", "Agents and tools that an orchestrator may call. All share one action interface."));
  box.append(text);
  return box;
}

function health(worker) {
  const state = !worker.enabled ? "off" : !worker.health ? "unknown" : worker.health.ok ? "ok" : "bad";
  const words = { off: "Disabled", unknown: "Not checked", ok: "Healthy", bad: "Not working" };
  const box = el("div", "pp-health", null, { "data-health": state });
  box.append(el("i"), el("b", "", words[state]));
  if (worker.enabled && worker.health) box.append(el("span", "", worker.health.text, { title: worker.health.text }));
  return box;
}

function cardFigures(worker) {
  const figures = [
    ["Calls", count(worker.calls)],
    ["Success", worker.success === null ? "–" : `${Math.round(worker.success * 100)} %`],
    ["Median", seconds(worker.median_latency_s) || "–"],
  ];
  if (worker.config.api_key) figures.push(["Key", worker.config.api_key]);
  if (worker.price_in || worker.price_out) figures.push(["$/M tokens", `${worker.price_in} / ${worker.price_out}`]);
  if (worker.price_call) figures.push(["Per call", dollars(worker.price_call)]);
  return figures;
}

function observed(observation) {
  const head = el("div", "pp-out-head", null, { "data-status": observation.status });
  const status = el("span", "pd-status");
  const [word, path] = STATUSES[observation.status];
  status.append(icon(path), el("b", "", word));
  const tokens = observation.tokens_in + observation.tokens_out;
  const facts = [seconds(observation.latency_s), tokens ? `${count(observation.tokens_in)} → ${count(observation.tokens_out)} tokens` : ""];
  head.append(status, el("span", "", facts.filter(Boolean).join(" · ")));
  return [head, el("pre", "pp-value", observation.error || readable(observation.value))];
}

function button(text, work, className = "pp-button") {
  const node = el("button", className, text, { type: "button" });
  node.addEventListener("click", work);
  return node;
}

function select(options, value, work) {
  const node = el("select", "pp-select");
  for (const [key, label] of options) node.append(el("option", "", label, { value: key }));
  node.value = value ?? "";
  node.addEventListener("change", () => work(node.value));
  return node;
}

/** The result of `read`, or null when a field has told what is wrong with it. */
function attempt(read) {
  try {
    return read();
  } catch {
    return null;
  }
}
