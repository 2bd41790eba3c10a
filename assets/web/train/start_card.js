// What would be started: the preset, whether it fits, what is missing, the button, and the same in a terminal.

import { copyButton, count, el, icon, saveFile } from "../lib/dom.js";
import { button } from "../lib/controls.js";
import { ACTIONS } from "../lib/icons.js";
import { plain } from "../lib/reply.js";
import { needs } from "../lib/rights.js";
import { labelStage, listMethods } from "./formats.js";
import { HERE, isCluster, isRented } from "./places.js";

const RENT = "rent"; // an option that stands for those that have not been asked for
const CLUSTER = "cluster"; // an option whose address a person has not written yet
const ADDRESS = "ray://10.0.0.5:10001";

const TINY = "The tiny model knows only the starter pool, by heart: it plans ledger, atlas, forge and itinerary tasks and nothing else. It cannot read another pool, chat, or answer from knowledge; for that choose starter:smollm2 or a model of the hub.";

/** A preset's name, and what it needs that is not installed here.
 * @param {import("../types").PresetDocument} preset */
const labelPreset = ({ name, needs: lacking }) => (lacking ? `${name} · needs ${lacking}` : name);

export class StartCard {
  /**
   * Draws what the `page` knows of its recipe; commands go to it.
   * @param {import("./page.js").TrainPage} page
   */
  constructor(page) {
    this.page = page;
    this.writesAddress = false;
    /** @type {import("../types").RentedPlace[] | null} */
    this.rented = null; // those that can be rented, once they were asked for
    this.root = el("section.train-card.train-start", { "aria-label": "New job" });
  }

  build() {
    const { page } = this;
    const picker = el("select.page-select.train-preset", { "aria-label": "Preset", id: "train-preset" });
    this.picker = picker;
    picker.addEventListener("change", () => picker.value && page.choose(picker.value));
    this.about = el("div.train-about");
    this.place = el("select.page-select.train-preset", { id: "train-place" });
    this.place.addEventListener("change", () => this.choosePlace(this.place.value));
    const place = el("label.train-place", { for: "train-place" }, el("span", {}, "Runs on"), this.place);
    this.address = el("input.page-field.train-address", { type: "text", id: "train-address", placeholder: ADDRESS, spellcheck: "false", autocapitalize: "none" });
    this.address.addEventListener("change", () => this.setPlace(this.address.value.trim() || HERE));
    this.addressLine = el("label.train-place", { for: "train-address" }, el("span", {}, "Address of the Ray cluster"), this.address);
    this.edit = el("button.page-button.train-edit", { type: "button" }, icon(ACTIONS.pencil), "Edit the recipe");
    this.edit.addEventListener("click", () => page.go({ new: "1" }));
    this.needs = el("div.train-needs", { id: "train-needs" });
    this.button = el("button.page-primary.train-go", { type: "button", "aria-describedby": "train-needs" }, "Start");
    this.button.addEventListener("click", () => page.submit());
    this.foot = el("div.train-foot", {}, this.needs, this.button);
    this.noGpu = el("p.train-no-gpu", { role: "status" }, icon(ACTIONS.warn), el("b", {}, "No GPU here"), "This recipe needs one. Choose where it runs:");
    this.terminal = el("details.train-terminal");
    this.tiny = el("p.train-honest", {}, TINY);
    this.root.replaceChildren(
      el("h2", {}, "New job"), picker, this.noGpu, place, this.addressLine, this.about, this.edit, page.fit.root, this.tiny, this.foot, this.terminal,
    );
  }

  draw() {
    const { page } = this;
    const preset = page.presets.find((candidate) => candidate.name === page.preset);
    const edited = !preset || Boolean(page.file);
    this.picker.replaceChildren(
      ...(edited ? [el("option", { value: "" }, preset ? `${preset.name}, edited` : `${page.recipe.name}, edited`)] : []),
      ...page.presets.map((option) => el("option", { value: option.name }, labelPreset(option))),
    );
    this.picker.value = edited ? "" : preset.name;
    this.drawAbout();
    this.drawPlace();
    this.tiny.hidden = page.recipe.model.base !== "starter:tiny";
    this.drawNeeds();
    this.drawButton();
    this.drawTerminal();
  }

  drawAbout() {
    const { recipe } = this.page;
    const stages = el("div.train-stages");
    for (const stage of ["who", ...listMethods(this.page.schema).map(([name]) => name), "evaluate"]) {
      if (!recipe[stage]) continue;
      const steps = [recipe[stage], ...(recipe[stage].phases || [])].reduce((sum, part) => sum + part.steps, 0);
      const chip =
        el("span.train-stage", {}, el("b", {}, labelStage(stage)), steps ? `${count(steps)} steps` : `${count(recipe[stage].questions || recipe[stage].count)} tasks`);
      stages.append(chip);
    }
    const facts =
      [recipe.model.base, recipe.model.lora ? `adapter of rank ${recipe.model.lora.rank}` : recipe.model.start ? `from ${recipe.model.start}` : "every weight", `on ${recipe.pool}`];
    this.about.replaceChildren(el("p.train-title", {}, recipe.title || recipe.name), stages, el("p.train-mute", {}, facts.join(" · ")));
  }

  drawPlace() {
    const where = this.page.recipe.where || HERE;
    const cluster = isCluster(where) ? { where, label: "A Ray cluster" } : { where: CLUSTER, label: "A Ray cluster …" };
    const rented = this.rented || [isRented(where) ? { where, label: where } : { where: RENT, label: "A rented machine …" }];
    this.place.replaceChildren(
      ...[{ where: HERE, label: "This machine" }, cluster, ...rented].map((option) => el("option", { value: option.where }, option.label)),
    );
    const writes = this.writesAddress && !isCluster(where);
    this.place.value = writes ? CLUSTER : where;
    const isWrongPlace = (this.page.missing || []).some((item) => item.key === "where" && item.blocks);
    this.noGpu.hidden = where !== HERE || !isWrongPlace;
    this.addressLine.hidden = !writes && !isCluster(where);
    if (document.activeElement !== this.address) this.address.value = isCluster(where) ? where : "";
  }

  /**
   * Take another place, or keep the one before where it is none.
   * @param {string} where
   */
  async setPlace(where) {
    const { page } = this;
    this.writesAddress = false;
    if (!(await page.replace({ action: "check", recipe: { ...page.recipe, where } }, page.preset))) this.drawPlace();
  }

  /**
   * Run on another machine; those that can be rented are asked for when a person first wants one.
   * @param {string} where
   */
  async choosePlace(where) {
    const { page } = this;
    if (where === CLUSTER) {
      this.writesAddress = true;
      this.drawPlace();
      this.address.focus();
      return;
    }
    if (where !== RENT) {
      await this.setPlace(where);
      return;
    }
    const reply = await page.ask({ action: "places" });
    if (reply.ok) this.rented = reply.places;
    else page.toast.say(plain(reply.problems), true);
    this.drawPlace();
    if (reply.ok) this.place.showPicker?.();
  }

  /** What is missing, right above the button that it keeps from starting. */
  drawNeeds() {
    const { page } = this;
    const problems = page.problems.map(([key, sentence]) => ({ key, sentence, link: "", blocks: true }));
    const all = [...problems, ...(problems.length ? [] : page.missing)];
    const blocking = all.filter((item) => item.blocks);
    const head = el("p.train-needs-head");
    if (!page.checked) head.append("Looking for what is missing …");
    else head.append(icon(blocking.length ? ACTIONS.warn : ACTIONS.check), blocking.length ? (blocking.length === 1 ? "One thing is missing" : `${blocking.length} things are missing`) : "Nothing is missing");
    this.needs.dataset.ready = page.checked ? String(!blocking.length) : "unknown";
    const list = el("ul");
    for (const item of all) {
      const entry = el("li", { "data-blocks": String(item.blocks) });
      if (item.key) {
        const key = el("button.train-key", { type: "button", title: "Show this field" }, item.key);
        key.addEventListener("click", () => page.reveal(item.key));
        entry.append(key);
      }
      entry.append(el("span", {}, item.sentence));
      if (item.link) entry.append(el("a.podium-link", { href: item.link }, `Open the ${namePage(item.link)} page`));
      list.append(entry);
    }
    this.needs.replaceChildren(head, ...(all.length ? [list] : []));
  }

  drawButton() {
    if (!this.button) return;
    const { page } = this;
    const blocked = page.problems.length || (page.missing || []).filter((item) => item.blocks).length;
    const busy = page.busy?.length;
    const ready = page.checked && !blocked && !page.sending;
    this.button.setAttribute("aria-disabled", String(!ready));
    const rents = isRented(page.recipe.where);
    needs(this.button, rents ? "train/rent" : "train/submit");
    const label = blocked ? `Cannot start: ${blocked} missing` : rents ? "See the price" : busy ? "Add to the queue" : "Start training";
    this.button.replaceChildren(icon(blocked ? ACTIONS.warn : ACTIONS.play), label);
  }

  drawTerminal() {
    const { page } = this;
    const open = this.terminal.open;
    const command = el("div.train-command", {}, el("code", {}, page.command), copyButton(() => page.command));
    const yaml = el("div.train-yaml-line", {}, copyButton(() => page.text, "Copy YAML"));
    const save = el("button.podium-link", { type: "button" }, `Save ${page.recipe.name}.yaml`);
    save.addEventListener("click", () => saveFile(`${page.recipe.name}.yaml`, new Blob([page.text], { type: "text/yaml" })));
    yaml.append(save);
    const note = page.file ? el("p.train-mute", {}, `Save the YAML as ${page.file} first.`) : "";
    this.terminal.replaceChildren(el("summary", {}, "In a terminal"), command, note, yaml);
    this.terminal.open = open || this.terminal.dataset.drawn !== "1";
    this.terminal.dataset.drawn = "1";
  }

  /**
   * Ask before a job is started that will not fit.
   * @param {string} reason
   */
  confirm(reason) {
    const sentence = `It will not fit. ${reason} It may end before its first step, or when memory runs out.`;
    return this.ask("It will not fit", [sentence], "Start anyway", "page-danger");
  }

  /**
   * Ask before a machine is rented.
   * @param {string[]} terms
   */
  agree(terms) {
    return this.ask("Rent this machine?", terms, "Rent it", "page-primary");
  }

  /**
   * Show sentences in place of the button until a person decides.
   * @param {string} title
   * @param {string[]} sentences
   * @param {string} go
   * @param {"page-primary" | "page-danger"} kind
   * @returns {Promise<boolean>}
   */
  ask(title, sentences, go, kind) {
    return new Promise((resolve) => {
      /** @param {boolean} start */
      const close = (start) => {
        box.remove();
        this.button.hidden = false;
        resolve(start);
      };
      const danger = kind === "page-danger";
      const back = button("Change the recipe", () => close(false), danger ? "page-primary" : "page-button");
      const box = el(
        "div.train-confirm", { role: "alertdialog", "aria-label": title, "data-danger": String(danger) },
        ...sentences.map((sentence) => el("p", {}, sentence)),
        el("div.train-tasks-foot", {}, back, button(go, () => close(true), kind)),
      );
      this.button.before(box);
      this.button.hidden = true;
      box.querySelector("button").focus();
    });
  }

  get blocked() {
    return this.button.getAttribute("aria-disabled") === "true";
  }
}

/** The title of the page behind an address of the studio: "/traces?pool=shop" is "Traces".
 * @param {string} address */
function namePage(address) {
  const name = new URL(address, location.origin).pathname.slice(1) || "run";
  return name[0].toUpperCase() + name.slice(1);
}
