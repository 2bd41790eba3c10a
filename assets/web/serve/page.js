// The Serve page: what is served, how clients reach it, and the tokens that let them in.

import { getDocument, sendCommand } from "../lib/api.js";
import { plain } from "../lib/reply.js";
import { button, busy, select } from "../lib/controls.js";
import { copyButton, count, el, heading, recall } from "../lib/dom.js";
import { needs } from "../lib/rights.js";
import { DeploymentList } from "./deployments.js";
import { snippets } from "./snippets.js";

const REFRESH_MS = 2000;

/** @param {HTMLElement} root */
export function mount(root) {
  new ServePage(root).start();
}

export class ServePage {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.cards = new Map();
    /** @type {Record<string, HTMLElement>} */
    this.problems = {};
    this.isLost = false; // the message says that the studio does not answer
    this.message = el("p.serve-said", { role: "status" });
    this.empty = emptyState();
    this.servers = el("section.serve-servers", { "aria-label": "What is served" });
    this.tokens = el("ul.serve-tokens");
    this.fresh = el("div.serve-fresh");
    const side = el("div.serve-side", {}, this.startCard(), this.tokenCard());
    this.deployments = new DeploymentList(this);
    const columns = el("div.serve-columns", {}, el("div.serve-main", {}, this.deployments.root, this.servers), side);
    const page = el(
      "div.page-body.serve-page", {}, heading("Serve", "Use a pool from your own programs as if it were one model, by the OpenAI API, by MCP or by A2A."),
      this.message, columns,
    );
    root.replaceChildren(page);
  }

  async start() {
    await this.load();
    setInterval(() => document.visibilityState === "visible" && this.load(), REFRESH_MS);
  }

  async load() {
    try {
      this.take(await getDocument("/api/serve"));
      if (this.isLost) this.say("");
    } catch {
      this.say("The studio does not answer; trying again.", true);
      this.isLost = true;
    }
  }

  /** @param {import("../types").ServeState} state */
  take(state) {
    const first = !this.state;
    this.state = state;
    this.fill(this.pool, state.pools.map((name) => [name, name]), recall("pool") || "starter");
    const suggestion = state.defaults[this.pool.value];
    const choices = state.orchestrators.map(([label, name]) => [name, label]);
    const preset = recall("orchestrator");
    for (const name of [suggestion, preset]) if (name && !choices.some(([other]) => other === name)) choices.unshift([name, name]);
    this.fill(this.orchestrator, choices, preset || suggestion);
    if (document.activeElement !== this.port && !this.portTouched) this.port.value = String(state.port);
    if (first) this.go.disabled = this.keep.disabled = false;
    this.deployments.draw(state);
    this.drawServers();
    this.drawTokens();
  }

  /**
   * @param {HTMLSelectElement} field
   * @param {string[][]} options
   * @param {string} chosen
   */
  fill(field, options, chosen) {
    const key = JSON.stringify(options);
    if (field.dataset.options === key) return;
    const before = field.value || chosen;
    field.replaceChildren(...options.map(([value, label]) => el("option", { value }, label)));
    field.value = options.some(([value]) => value === before) ? before : (options[0] || [""])[0];
    field.dataset.options = key;
  }

  startCard() {
    this.pool = select([], "");
    this.orchestrator = select([], "");
    this.port = el("input.serve-input", { type: "number", min: 1, max: 65535, inputmode: "numeric" });
    this.port.addEventListener("input", () => (this.portTouched = true));
    this.name = el("input.serve-input", { type: "text", placeholder: "podium-POOL", maxlength: 200 });
    this.everywhere = el("input", { type: "checkbox" });
    this.go = needs(el("button.page-primary", { type: "submit", disabled: "" }, "Start serving"), "serve/start"); // until pools are there to choose
    this.keep = needs(button("Deploy under this name", () => busy(this.keep, "Checking …", () => this.deploy())), "serve/deploy");
    this.keep.disabled = true;
    this.origins = el("input.serve-input", { type: "text", placeholder: "such as http://localhost:3000", maxlength: 2000 });
    this.unrecorded = el("input", { type: "checkbox" });
    this.noFollowUps = el("input", { type: "checkbox" });
    const two = el("div.serve-two", {}, this.field("port", "Port", this.port), this.field("name", "Model name", this.name));
    const checks = [
      el("label.serve-check", {}, this.everywhere, "Let other machines in (with a token)"),
      el("label.serve-check", {}, this.unrecorded, "Store nothing of its requests"),
      el("label.serve-check", {}, this.noFollowUps, "Read no message as a follow-up of the one before"),
    ];
    this.problems.everywhere = el("span.serve-problem", { role: "alert" });
    this.problems[""] = el("p.serve-problem", { role: "alert" });
    const card = el(
      "form.serve-card", { "aria-label": "Serve a pool", novalidate: "" }, el("h2", {}, "Serve a pool"),
      this.field("pool", "Pool", this.pool), this.field("orchestrator", "Orchestrator", this.orchestrator), two,
      this.field("origins", "Web pages that may use it", this.origins), ...checks,
      this.problems.everywhere, this.problems[""], this.go, this.keep,
      el("p.serve-lead", {}, "A deployment keeps its name while what answers changes: try another orchestrator on its requests, promote it, roll back."),
    );
    card.addEventListener("submit", (event) => {
      event.preventDefault();
      busy(this.go, "Starting …", () => this.begin());
    });
    return card;
  }

  /**
   * @param {string} name
   * @param {string} label
   * @param {HTMLElement} input
   */
  field(name, label, input) {
    const problem = (this.problems[name] = el("span.serve-problem", { role: "alert" }));
    return el("label.serve-field", {}, el("span.serve-label", {}, label), input, problem);
  }

  async deploy() {
    const done = await sendCommand("serve", {
      action: "deploy", pool: this.pool.value, orchestrator: this.orchestrator.value, name: this.name.value.trim(),
    });
    this.showProblems(done);
    if (done.ok) this.say(done.message);
    await this.load();
  }

  /** @param {{ problems: [string, string][] }} done */
  showProblems(done) {
    for (const [name, node] of Object.entries(this.problems))
      node.textContent = plain(done.problems.filter(([where]) => (where in this.problems ? where : "") === name));
  }

  async begin() {
    const settings = {
      pool: this.pool.value, orchestrator: this.orchestrator.value, name: this.name.value.trim(), port: Number(this.port.value),
      everywhere: this.everywhere.checked, unrecorded: this.unrecorded.checked, no_follow_ups: this.noFollowUps.checked,
      origins: this.origins.value,
    };
    const done = await sendCommand("serve", { action: "start", ...settings });
    this.showProblems(done);
    if (done.ok) {
      this.portTouched = false;
      this.say(done.message);
    }
    await this.load();
  }

  drawServers() {
    const servers = new Map(this.state.servers.map((server) => [`${server.port} ${server.started_at}`, server]));
    for (const [key, card] of this.cards) {
      if (!servers.has(key)) {
        card.root.remove();
        this.cards.delete(key);
      }
    }
    for (const [key, server] of servers) {
      if (!this.cards.has(key)) {
        const card = new ServerCard(this, server);
        this.cards.set(key, card);
        this.servers.append(card.root);
      }
      this.cards.get(key).update(server);
    }
    if (servers.size || this.state.deployments.length) this.empty.remove();
    else this.servers.append(this.empty);
  }

  tokenCard() {
    this.tokenName =
      el("input.serve-input", { type: "text", placeholder: "For which client?", "aria-label": "Name of a new token", maxlength: 64 });
    const add = needs(el("button.page-button", { type: "submit" }, "New token"), "serve/add_token");
    const line = el("div.serve-line", {}, this.tokenName, add);
    this.tokenLead = el("p.serve-lead");
    this.tokenProblem = el("p.serve-problem", { role: "alert" });
    const card = el(
      "form.serve-card", { "aria-label": "Tokens", novalidate: "" }, el("h2", {}, "Tokens"), this.tokenLead, this.tokens, this.fresh, line,
      this.tokenProblem,
    );
    card.addEventListener("submit", (event) => {
      event.preventDefault();
      busy(add, "Making …", () => this.addToken());
    });
    return card;
  }

  async addToken() {
    const done = await sendCommand("serve", { action: "add_token", name: this.tokenName.value.trim() });
    this.tokenProblem.textContent = plain(done.problems);
    if (!done.ok) return;
    this.tokenName.value = "";
    const line = el("div.serve-line", {}, el("code.serve-token", {}, done.token), copyButton(done.token));
    this.fresh.replaceChildren(el("p", {}, `The token of ${done.name}. Copy it now: it is shown only this once.`), line);
    await this.load();
  }

  drawTokens() {
    const { tokens } = this.state;
    this.tokenLead.textContent = tokens.length
      ? "Every request needs one of these. Its name stands on the traces of what it asked."
      : this.state.guarded
        ? "Every request needs a token. You have none; a token may do what you may."
        : "Nobody needs a token on this machine as long as there is none.";
    const key = JSON.stringify(tokens);
    if (this.tokens.dataset.shown === key) return;
    this.tokens.dataset.shown = key;
    this.tokens.replaceChildren(
      ...tokens.map((token) => {
        const remove = needs(button("Remove", () => this.removeToken(token.name), "podium-link"), "serve/remove_token");
        remove.setAttribute("aria-label", `Remove the token ${token.name}`);
        const day = new Date(token.created_at).toLocaleDateString();
        return el("li.serve-line", {}, el("b", {}, token.name), el("span.serve-since", {}, `since ${day}`), remove);
      }),
    );
  }

  /** @param {string} name */
  async removeToken(name) {
    if (!confirm(`Remove the token ${name}? What uses it is refused from now on.`)) return;
    const done = await sendCommand("serve", { action: "remove_token", name });
    this.fresh.replaceChildren();
    this.say(done.ok ? done.message : plain(done.problems), !done.ok);
    await this.load();
  }

  /**
   * @param {string} text
   * @param {boolean} bad
   */
  say(text, bad = false) {
    this.isLost = false;
    this.message.textContent = text;
    this.message.classList.toggle("serve-bad", bad);
  }
}

class ServerCard {
  /**
   * @param {ServePage} page
   * @param {import("../types").ServedModel} server
   */
  constructor(page, server) {
    this.page = page;
    /** @type {boolean|undefined} */
    this.guarded = undefined; // whether a request needs a token
    this.root = el("article.serve-card.serve-server", { "data-port": server.port, "aria-label": server.model });
    this.about = el("p");
    const title = el("div.serve-title", {}, el("h2", {}, server.model), this.about);
    this.pill = el("span.traces-pill");
    this.stop = needs(button("Stop", () => this.end(server.port), "page-button"), "serve/stop");
    const head = el("header.serve-head", {}, title, this.pill, this.stop);
    this.url = address(server);
    const facts = el("dl.serve-facts");
    this.figures = el("dd");
    fact(facts, "Base URL", code(this.url));
    fact(facts, "MCP", code(this.url.replace(/\/v1$/, "/mcp")));
    fact(facts, "A2A", code(this.url.replace(/\/v1$/, "/a2a")));
    if (server.origins.length) fact(facts, "Web pages", server.origins.join(", "));
    facts.append(el("dt", {}, "Requests"), this.figures);
    const traces = new URLSearchParams({ pool: server.pool, orchestrator: server.orchestrator });
    this.link = el("a.podium-link", { href: `/traces?${traces}` }, "Traces");
    this.tabs = el("div.serve-tabs", { role: "tablist", "aria-label": "Ways to call it" });
    this.snippet = el("pre.serve-snippet", { tabindex: 0, role: "tabpanel" });
    const copy = copyButton(() => this.snippet.textContent);
    copy.classList.add("serve-copy");
    this.root.append(head, facts, this.tabs, el("div.serve-frame", {}, this.snippet, copy));
    this.show("curl", server);
  }

  /** @param {import("../types").ServedModel} server */
  update(server) {
    this.about.textContent = `Pool ${server.pool} v${server.version} · ${server.orchestrator_label}`;
    const starting = server.state === "starting";
    this.pill.textContent = starting ? "starting" : server.running ? `${count(server.running)} running` : "ready";
    this.pill.dataset.kind = starting || server.running ? "running" : "good";
    const text = `${count(server.answered)} answered${server.failed ? `, ${count(server.failed)} without an answer` : ""}`;
    if (this.figures.dataset.text !== text) {
      this.figures.dataset.text = text;
      this.figures.replaceChildren(text, " · ", server.recorded ? this.link : "nothing of them is stored");
    }
    const guarded = this.page.state.guarded;
    if (this.guarded !== guarded) {
      this.guarded = guarded;
      this.show(this.shown, server);
    }
  }

  /**
   * @param {string} name
   * @param {import("../types").ServedModel} server
   */
  show(name, server) {
    this.shown = name;
    const all = snippets({ ...server, url: this.url }, { ...this.page.state, guarded: this.guarded });
    this.tabs.replaceChildren(
      ...all.map(([title, text]) => {
        const tab = button(title, () => this.show(title, server), "serve-tab");
        tab.setAttribute("role", "tab");
        tab.setAttribute("aria-selected", String(title === name));
        if (title === name) this.snippet.textContent = text;
        return tab;
      }),
    );
    this.snippet.setAttribute("aria-label", `How to call it: ${name}`);
  }

  /** @param {number} port */
  async end(port) {
    await busy(this.stop, "Stopping …", async () => {
      const done = await sendCommand("serve", { action: "stop", port });
      this.page.say(done.ok ? done.message : plain(done.problems), !done.ok);
      await new Promise((done) => setTimeout(done, 1500));
      await this.page.load();
    });
  }
}

/**
 * A server that listens everywhere is reached by the name that this page was reached by.
 * @param {import("../types").ServedModel} server
 */
function address(server) {
  return server.host === "0.0.0.0" ? server.url.replace("127.0.0.1", location.hostname) : server.url;
}

/** @param {string} text */
function code(text) {
  return el("span.serve-code", {}, el("code", {}, text), copyButton(text));
}

/**
 * @param {HTMLElement} list
 * @param {string} name
 * @param {Node | string} content
 */
function fact(list, name, content) {
  list.append(el("dt", {}, name), el("dd", {}, content));
}

function emptyState() {
  return el(
    "div.serve-empty", {}, el("h2", {}, "Nothing is served yet"),
    el(
      "p", {},
      "Choose a pool and an orchestrator and press Start serving. The server is a process of its own: it goes on when the studio is closed, and every request becomes a trace here.",
    ),
  );
}
