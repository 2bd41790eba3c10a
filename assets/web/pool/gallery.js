// The gallery: templates as cards, and the model servers that were found on this machine. One click adds a
// worker, a second one tests it. Where something is needed that has no default, the click opens a small dialog.

import { plain } from "../lib/reply.js";
import { button, busy, select } from "../lib/controls.js";
import { el, icon } from "../lib/dom.js";
import { documentsField, keyField, modelField, textField } from "../lib/fields.js";
import { ACTIONS, NEEDS, kindIcon } from "../lib/icons.js";
import { needs } from "../lib/rights.js";
import { openEvidence } from "./evidence.js";
import { openFunction, openMcp, openOpenApi, openPoolFile, openSpace } from "./imports.js";
import { openWorker } from "./worker_dialogs.js";
import { testResult, testWorker } from "./worker_test.js";

/** @typedef {import("./page.js").PoolPage} PoolPage */
/** @typedef {import("../types").TemplateCard} TemplateCard */
/** @typedef {import("../types").TemplateField} TemplateField */
/** @typedef {import("../lib/fields.js").InputField} InputField */
/** @typedef {import("../lib/reply.js").Problem} Problem */
/** @typedef {() => { base_url: string, api_key: string }} Endpoint */
/** @typedef {{ server: string, base_url: string, models: string[] }} FoundServer */

/** @type {[string, string, string][]} */
const GROUPS = [
  ["models", "Models", "Language models behind an API, on a server of your own, or on this machine."],
  ["roles", "Role agents", "One model, told to do one job well. The prompts are ours; edit them as you like."],
  ["tools", "Tools", "Code that does one thing exactly."],
  ["imports", "Imports", "Workers that something else already describes."],
];
/** @type {Record<string, (page: PoolPage, back: () => void) => void>} */
const IMPORTS = { mcp: openMcp, openapi: openOpenApi, function: openFunction, space: openSpace, pool_file: openPoolFile };

export class Gallery {
  /** @param {PoolPage} page */
  constructor(page) {
    this.page = page;
    this.group = "all";
  }

  /** Open it afresh: what the pool holds decides which models there are. */
  async open() {
    const reply = await this.page.act({ action: "gallery" });
    if (!reply.ok) return;
    /** @type {TemplateCard[]} */
    this.templates = reply.templates;
    this.root = el("div.pool-gallery");
    this.search = el("input.page-search", { type: "search", placeholder: "Search templates", "aria-label": "Search templates" });
    this.search.addEventListener("input", () => this.filter());
    this.chips = el("div.page-chips", { role: "group", "aria-label": "Show" });
    for (const [group, label] of [["all", "All"], ...GROUPS]) this.chips.append(this.chip(group, label));
    const bar = el("div.pool-gallery-bar", {}, this.search, this.chips);
    this.nothing =
      el("p.page-lead", {}, "No template fits these words. “Any OpenAI-compatible URL” and the imports reach most of what exists.");
    this.nearby = this.section("found", "Found on this machine", "");
    this.root.append(bar, this.nearby, ...GROUPS.map((group) => this.groupSection(group, reply.models)), this.nothing);
    this.filter();
    this.show();
    this.lookAround();
  }

  /**
   * Bring it (back) into the drawer, with the focus on `node`.
   * @param {HTMLElement | null} node
   */
  show(node = null) {
    this.page.drawer.open("Add a worker", [this.root], { wide: true, focus: node || this.search });
    node?.scrollIntoView({ block: "nearest" });
  }

  /**
   * @param {string} group
   * @param {string} label
   */
  chip(group, label) {
    const chip = button(label, () => {
      this.group = group;
      for (const other of this.chips.children) other.setAttribute("aria-pressed", String(other === chip));
      this.filter();
    }, "page-chip");
    chip.setAttribute("aria-pressed", String(group === this.group));
    return chip;
  }

  /**
   * @param {string} group
   * @param {string} title
   * @param {string} about
   */
  section(group, title, about) {
    const head = el("div.pool-gallery-section-head", {}, el("h3", {}, title), el("p", {}, about));
    return el("section.pool-gallery-section", { "data-group": group, "aria-label": title }, head, el("div.pool-gallery-grid"));
  }

  /**
   * @param {[string, string, string]} section
   * @param {import("../types").ModelChoice[]} models
   */
  groupSection([group, title, about], models) {
    const section = this.section(group, title, about);
    const [head, grid] = section.children;
    if (group === "roles") {
      this.runsOn = select(models.map((model) => [model.name, model.label]), models[0]?.name);
      this.runsOn.setAttribute("aria-label", "Role agents run on");
      head.append(el("label.pool-gallery-runs-on", {}, "Run on ", this.runsOn));
    }
    grid.append(...this.templates.filter((template) => template.group === group).map((template) => this.card(template)));
    return section;
  }

  filter() {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const section of this.root.querySelectorAll("section")) {
      const inGroup = this.group === "all" || section.dataset.group === this.group ||
        (section.dataset.group === "found" && this.group === "models");
      let here = 0;
      for (const card of /** @type {NodeListOf<HTMLElement>} */ (section.querySelectorAll(".pool-gallery-card"))) {
        card.hidden = !words.every((word) => card.dataset.words.includes(word));
        here += card.hidden ? 0 : 1;
      }
      section.hidden = !inGroup || (here === 0 && (words.length > 0 || section.dataset.group !== "found"));
      shown += section.hidden ? 0 : here;
    }
    this.nothing.hidden = shown > 0;
  }

  /** @param {import("../types").TemplateCard} template */
  card(template) {
    const card = el("article.pool-gallery-card", {
      "data-template": template.id, "data-role": template.group === "tools" || template.group === "imports" ? "tool" : "agent",
    });
    card.dataset.words = `${template.title} ${template.line} ${template.needs} ${template.kind} ${template.group}`.toLowerCase();
    const badge = el("span.page-badge");
    if (template.group === "models" && template.kind === "chat") badge.append(el("b", {}, initials(template.title)));
    else badge.append(icon(kindIcon(template)));
    const text = el("div.pool-gallery-text", {}, el("h4", {}, template.title), el("p", {}, template.line));
    const head = el("div.pool-gallery-head", {}, badge, text);
    const wants = el("span.pool-gallery-needs", { "data-wants": template.needs }, icon(NEEDS[template.needs]), `Needs ${template.needs}`);
    const done = el("div.pool-gallery-done", { "aria-live": "polite" });
    /** @param {{ currentTarget: HTMLButtonElement }} event */
    const open = (event) => this.click(template, done, event.currentTarget);
    const add = needs(button(template.preset ? "Add" : "Open", open, "pool-gallery-add"), "pool/add_template");
    add.setAttribute("aria-label", `${add.textContent} ${template.title}`);
    const foot = el("div.pool-gallery-foot", {}, wants);
    if (template.preset) {
      const edit = needs(button("Edit first", () => this.editFirst(template), "pool-gallery-edit"), "pool/save_worker");
      edit.setAttribute("aria-label", `Edit ${template.title} first`);
      foot.append(edit);
    }
    foot.append(add);
    card.append(head, foot, done);
    return card;
  }

  /** @param {import("../types").TemplateCard} template */
  editFirst(template) {
    const name = freeName(template.preset.name, this.page.state.pool.workers);
    const preset = { ...template.preset, name, description: template.preset.description.replace(" ({model})", "") };
    if (template.runs_on_model) {
      const base = this.page.worker(this.runsOn.value);
      if (base) Object.assign(preset, { kind: base.kind, config: { ...base.config, role: template.preset.config.role } });
    }
    openWorker(this.page, preset, null, () => this.show());
  }

  /**
   * What a click on a card does.
   * @param {TemplateCard} template
   * @param {HTMLElement} done
   * @param {HTMLButtonElement} node
   */
  async click(template, done, node) {
    if (!template.preset) return IMPORTS[template.id](this.page, () => this.show(node));
    const request = { action: "add_template", template: template.id, model_of: this.runsOn.value };
    const reply = await busy(node, "Adding …", () => this.page.command(request));
    if (reply.needs) return this.ask(template, done, reply.needs);
    if (!reply.ok) return this.page.say(plain(reply.problems), true);
    return this.tell(done, reply.added);
  }

  /**
   * The small dialog: only the fields that a click alone cannot know.
   * @param {TemplateCard} template
   * @param {HTMLElement} done
   * @param {Problem[]} problems
   */
  ask(template, done, problems) {
    /** @type {Map<string, InputField>} */
    const fields = new Map();
    /** @param {string} name */
    const value = (name) => fields.get(name)?.input.value.trim() ?? String(template.preset.config[name] ?? "");
    const endpoint = () => ({ base_url: value("base_url"), api_key: value("api_key") });
    for (const need of template.fields) fields.set(need.field, makeField(this.page, need, endpoint, template.needs === "a running server"));
    const general = el("div.form-general", { role: "alert" });
    const form = el("form.form-fields", {}, ...[...fields.values()].map((field) => field.node));
    const add = needs(el("button.page-primary", { type: "submit" }, `Add ${template.title}`), "pool/add_template");
    form.append(general, this.page.drawer.foot(button("Back", () => this.show()), add));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      /** @type {Record<string, string>} */
      const values = {};
      let wrong = false;
      for (const [name, field] of fields) {
        try {
          values[name] = field.read() ?? "";
        } catch {
          wrong = true;
        }
      }
      if (wrong) return form.querySelector(".form-wrong input")?.focus();
      const request = { action: "add_template", template: template.id, values };
      const reply = await busy(add, "Adding …", () => this.page.command(request));
      if (reply.ok) return this.show(this.tell(done, reply.added));
      const rest = reply.problems.filter((/** @type {Problem} */ [where, what]) => !(fields.get(where)?.say(what), fields.has(where)));
      general.textContent = plain(rest);
      return null;
    });
    const notes = [el("p.page-lead", {}, template.line)];
    if (template.note) notes.push(el("p.pool-hint", {}, template.note));
    const missing = new Set(problems.map(([where]) => where));
    const first = [...fields].find(([name]) => missing.has(name))?.[1].input;
    this.page.drawer.open(`Add: ${template.title}`, [...notes, form], { back: () => this.show(), focus: first });
  }

  /**
   * On the card: what was added, and the second click that tests it. Returns that button.
   * @param {HTMLElement} done
   * @param {string} name
   */
  tell(done, name) {
    const test = needs(button("Test", async (event) => {
      const result = await busy(event.currentTarget, "Testing …", () => testWorker(this.page, name));
      this.page.tests.set(name, result);
      done.querySelector(".pool-test")?.remove();
      done.append(testResult(result));
      this.page.show();
    }, "pool-gallery-test"), "pool/test_worker");
    test.setAttribute("aria-label", `Test ${name}`);
    const message = el("span", {}, "Added as ", el("b", {}, name));
    const measure = needs(button("Measure", () => openEvidence(this.page, name), "pool-gallery-measure"), "pool/evidence");
    measure.setAttribute("aria-label", `What does ${name} bring?`);
    done.replaceChildren(el("div.pool-gallery-added", {}, icon(ACTIONS.check), message, test, measure));
    return test;
  }

  /** Ask which model servers run on this machine, while the person already reads. */
  async lookAround() {
    const [head, grid] = this.nearby.children;
    const about = head.querySelector("p");
    about.textContent = "Looking for Ollama, vLLM, LM Studio and llama.cpp …";
    const reply = await this.page.send({ action: "discover" });
    /** @type {FoundServer[]} */
    const servers = reply.found || [];
    about.textContent = servers.length
      ? "Ready to add: no key, no form."
      : "No model server answers on this machine. Start Ollama, vLLM, LM Studio or llama.cpp and open this again.";
    grid.replaceChildren(...servers.map((server) => this.serverCard(server)));
    this.filter();
  }

  /** @param {FoundServer} server */
  serverCard(server) {
    const card = el("article.pool-gallery-card.pool-gallery-server", { "data-server": server.base_url, "data-role": "agent" });
    card.dataset.words = `${server.server} ${server.base_url} ${server.models.join(" ")}`.toLowerCase();
    const badge = el("span.page-badge", {}, icon(NEEDS["a model"]));
    const text = el("div.pool-gallery-text", {}, el("h4", {}, server.server), el("p", {}, server.base_url));
    const head = el("div.pool-gallery-head", {}, badge, text);
    const list = el("ul.pool-gallery-models");
    for (const model of server.models) {
      const done = el("div.pool-gallery-done", { "aria-live": "polite" });
      const add = needs(button("Add", async (event) => {
        const request = { action: "add_found", server: server.server, base_url: server.base_url, model };
        const reply = await busy(event.currentTarget, "Adding …", () => this.page.act(request));
        if (reply.ok) this.tell(done, reply.added);
      }, "pool-gallery-add-model"), "pool/add_found");
      add.setAttribute("aria-label", `Add ${model}`);
      list.append(el("li", {}, el("span.pool-gallery-model", { title: model }, model), add, done));
    }
    if (!server.models.length) list.append(el("li.pool-gallery-none", {}, "It runs, but has no model yet."));
    card.append(head, list);
    return card;
  }
}

/**
 * @param {PoolPage} page
 * @param {TemplateField} need
 * @param {Endpoint} endpoint
 * @param {boolean} atOnce
 * @returns {InputField}
 */
function makeField(page, need, endpoint, atOnce) {
  if (need.control === "key") return keyField(page, need);
  if (need.control === "model") return modelField(page, need, endpoint, atOnce);
  if (need.control === "documents") return documentsField(need);
  return textField({ ...need, placeholder: need.control === "path" ? "/path/on/this/machine" : "" });
}

/**
 * "OpenRouter" -> "OR", "vLLM" -> "vL", "Any OpenAI-compatible URL" -> "…"
 * @param {string} title
 */
function initials(title) {
  if (title.startsWith("Any ")) return "…";
  if (/^[a-z]/.test(title)) return title.slice(0, 2);
  const capitals = title.replace(/[^A-Z]/g, "");
  return (capitals.length > 1 ? capitals.slice(0, 2) : title.slice(0, 1)).toUpperCase();
}

/**
 * @param {string} proposed
 * @param {import("../types").WorkerCard[]} workers
 */
function freeName(proposed, workers) {
  const taken = new Set(workers.map((worker) => worker.name));
  let name = proposed;
  for (let number = 2; taken.has(name); number++) name = `${proposed}_${number}`;
  return name;
}
