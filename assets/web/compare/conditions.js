// For which pools it holds: orchestrators by pool condition and held-out family, and what is lost without each worker.

import { el } from "../lib/dom.js";
import { differencePlot, heat, shade } from "./charts.js";
import { Figure, table } from "./figure.js";
import { emptyState, Filters } from "./filters.js";
import { all, ask, one } from "./address.js";
import { difference, interval, joinSentences, percent, plural, points } from "./formats.js";

/** @typedef {import("./page.js").ComparePage} ComparePage */
/** @typedef {import("../types").MatrixRow} MatrixRow */
/** @typedef {import("../types").WorkerDrop} WorkerDrop */

/** @type {Record<string, string>} */
const ABOUT = {
  seen: "The pool as it is",
  memory: "With lessons of the pool's recorded failures in the prompt",
  renamed: "Every worker has another name",
  distractors: "Workers that do not help were added",
  missing: "A worker is gone",
  flaky: "Calls fail now and then",
  priced: "Workers cost money",
  redescribed: "Every worker has another description",
  shuffled: "Some of the workers, in another order",
  added: "A worker that the task needs came after training",
  varied: "Every task has a pool of its own",
  "held-out family": "Tasks of families that no training has seen",
};

export class MatrixView {
  /** @param {ComparePage} page */
  constructor(page) {
    this.page = page;
    this.root = el("div.compare-condition");
    this.filters = new Filters([["family", "Family", "All families"], ["level", "Level", "All levels"]], () => this.show(true));
    this.body = el("div.compare-body");
    this.root.append(this.filters.root, this.body);
  }

  /** @param {boolean} again */
  async show(again = false) {
    const filters = { job: all("job"), family: one("family"), level: one("level") };
    if (JSON.stringify(filters) === this.shown && !again) return;
    this.shown = JSON.stringify(filters);
    const request = (this.waiting = Symbol());
    const reply = await ask("matrix", filters);
    if (request !== this.waiting) return;
    this.reply = reply;
    this.filters.root.hidden = !reply.ok && !one("family") && !one("level");
    if (reply.ok) this.draw(reply);
    else this.body.replaceChildren(emptyState(reply.hint, this.page, { conditions: ["renamed", "distractors", "missing", "flaky"] }));
  }

  /** @param {import("../types").MatrixDocument} reply */
  draw(reply) {
    this.filters.fill({ family: reply.choices.families, level: reply.choices.levels }, (name, value) =>
      (name === "level" ? `level ${value}` : value));
    const shown = reply.columns.filter((name) => name !== "priced" || reply.rows.some((row) => row.cells.priced));
    /** @type {(name: string) => import("./figure.js").Column<MatrixRow>} */
    const cell = (name) => ({
      label: name, title: ABOUT[name], text: (row) => (row.cells[name] ? interval(row.cells[name].mean) : "–"),
      node: (row) => fillCell(row.cells[name]),
      csv: [
        [name, (row) => row.cells[name]?.mean[0]], [`${name}_low`, (row) => row.cells[name]?.mean[1]],
        [`${name}_high`, (row) => row.cells[name]?.mean[2]], [`${name}_change`, (row) => row.cells[name]?.change?.[0]],
      ],
    });
    /** @type {import("./figure.js").Column<MatrixRow>[]} */
    const columns = [
      {
        label: "Orchestrator", text: (row) => row.orchestrator,
        node: (row) => el("span", { title: row.orchestrator }, this.page.label(row.orchestrator)),
      },
      ...shown.map(cell),
    ];
    const matrix = table({
      name: "matrix", title: "Generalization matrix",
      about: `Mean with 95 % interval; below it the change against the seen pool on the same tasks, in points.${joinSentences(reply.judges)}`,
      columns, rows: reply.rows, key: (row) => row.orchestrator,
    });
    const pictured = new Figure({
      show: el("span.podium-offscreen"), name: "matrix", title: "Generalization matrix",
      draw: (width) => heat(
        width, shown,
        reply.rows.map((row) => ({
          label: this.page.label(row.orchestrator),
          cells: shown.map((name) => (row.cells[name] ? { value: row.cells[name].mean[0], text: percent(row.cells[name].mean[0]) } : null)),
        })),
      ),
      data: () => ({
        columns: ["orchestrator", "condition", "tasks", "mean", "low", "high", "change", "change_low", "change_high"],
        rows: reply.rows.flatMap((row) => shown.filter((name) => row.cells[name]).map((name) => [
          row.orchestrator, name, row.cells[name].tasks, ...row.cells[name].mean, ...(row.cells[name].change || []),
        ])),
      }),
    });
    matrix.querySelector(".compare-figure-exports").append(...pictured.pictures());
    matrix.append(pictured.frame);
    this.body.replaceChildren(matrix, ...this.lacking(reply, shown));
  }

  /**
   * What was not measured, and the way to it.
   * @param {import("../types").MatrixDocument} reply
   * @param {string[]} shown
   */
  lacking(reply, shown) {
    const conditions = shown.filter((name) => !["seen", "held-out family"].includes(name) && !reply.rows.some((row) => row.cells[name]));
    const families = reply.rows.some((row) => row.cells["held-out family"]) ? [] : reply.held_out;
    if (!conditions.length && !families.length) return [];
    const words = [
      conditions.length ? `the pool conditions ${conditions.join(", ")}` : "",
      families.length ? `the held-out families (${families.join(", ")})` : "",
    ].filter(Boolean);
    return [
      emptyState(`Not measured yet: ${words.join(" and ")}.`, this.page, {
        orchestrators: reply.rows.map((row) => row.orchestrator), conditions, families,
      }),
    ];
  }
}

/** @param {import("../types").MatrixCell|undefined} cell */
function fillCell(cell) {
  if (!cell) return el("span.train-mute", {}, "–");
  const box = el("span.compare-condition-cell", { title: `${plural(cell.tasks, "task")}, ${plural(cell.episodes, "episode")}` });
  box.style.background = shade(cell.mean[0]);
  const [mean, low, high] = cell.mean;
  box.append(el("b", {}, percent(mean)), el("small", {}, `[${(low * 100).toFixed(0)}, ${(high * 100).toFixed(0)}]`));
  if (cell.change) box.append(el(
    "em", { "data-sure": cell.change[2] < 0 ? "worse" : cell.change[1] > 0 ? "better" : "open", title: difference(cell.change) },
    `${points(cell.change[0])} points`,
  ));
  return box;
}

export class AblationView {
  /** @param {ComparePage} page */
  constructor(page) {
    this.page = page;
    this.root = el("div.compare-ablation");
    this.filters = new Filters(
      [["ablated", "Orchestrator", null], ["family", "Family", "All families"], ["level", "Level", "All levels"]], () => this.show(true),
    );
    this.body = el("div.compare-body");
    this.root.append(this.filters.root, this.body);
  }

  /** @param {boolean} again */
  async show(again = false) {
    const filters = { job: all("job"), family: one("family"), level: one("level"), orchestrator: one("ablated") };
    if (JSON.stringify(filters) === this.shown && !again) return;
    this.shown = JSON.stringify(filters);
    const request = (this.waiting = Symbol());
    const reply = await ask("ablation", filters);
    if (request !== this.waiting) return;
    this.reply = reply;
    this.filters.root.hidden = !reply.ok && !one("family") && !one("level") && !one("ablated");
    if (reply.ok) this.draw(reply);
    else this.body.replaceChildren(emptyState(reply.hint, this.page, this.settings([])));
  }

  /** @param {string[]} orchestrators */
  settings(orchestrators) {
    return { orchestrators, conditions: ["seen"], without: this.page.reply?.workers || [] };
  }

  /** @param {import("../types").AblationDocument} reply */
  draw(reply) {
    this.filters.fill(
      { ablated: reply.choices.orchestrators, family: reply.choices.families, level: reply.choices.levels },
      (name, value) => (name === "level" ? `level ${value}` : name === "ablated" ? this.page.label(value) : value),
    );
    this.filters.selects.ablated.select.value = reply.orchestrator;
    const name = this.page.label(reply.orchestrator);
    if (!reply.workers.length) {
      const called = Object.keys(reply.shares);
      this.body.replaceChildren(
        emptyState(
          `No worker was switched off for ${name} yet. It called ${called.length ? called.join(", ") : "none"}: measure the same tasks without each of them.`,
          this.page, { ...this.settings([reply.orchestrator]), without: called },
        ),
      );
      return;
    }
    const rows =
      reply.workers.map((row) => ({ ...row, label: `without ${row.without}`, value: row.change, note: `${difference(row.change)}` }));
    const figure = new Figure({
      name: "ablation", title: `What ${name} loses without each worker`,
      about: `In points against the whole pool (${interval(reply.seen.mean)}, ${plural(reply.seen.tasks, "task")}), on the same tasks.${joinSentences(reply.judges)}`,
      draw: (width) => differencePlot(width, rows, { written: points }),
      data: () => ({
        columns: ["without", "change", "change_low", "change_high", "mean", "low", "high", "tasks"],
        rows: reply.workers.map((row) => [row.without, ...row.change, ...row.mean, row.tasks]),
      }),
    });
    /** @type {import("./figure.js").Column<WorkerDrop>[]} */
    const columns = [
      { label: "Without", text: (row) => row.without },
      {
        label: "Mean", number: true, text: (row) => interval(row.mean),
        csv: [["mean", (row) => row.mean[0]], ["low", (row) => row.mean[1]], ["high", (row) => row.mean[2]]],
      },
      {
        label: "Change in points", number: true, text: (row) => difference(row.change),
        csv: [["change", (row) => row.change[0]], ["change_low", (row) => row.change[1]], ["change_high", (row) => row.change[2]]],
      },
      {
        label: "Improved / regressed / equal", text: (row) => `${row.wins} / ${row.losses} / ${row.ties}`,
        csv: [["improved", (row) => row.wins], ["regressed", (row) => row.losses], ["equal", (row) => row.ties]],
      },
      {
        label: "Share of its calls", number: true, text: (row) => percent(reply.shares[row.without] ?? null),
        csv: [["share_of_calls", (row) => reply.shares[row.without]]],
      },
    ];
    const left = Object.keys(reply.shares).filter((worker) => !reply.workers.some((row) => row.without === worker));
    const more = left.length
      ? [
        emptyState(`Not switched off yet, though it calls them: ${left.join(", ")}.`, this.page, {
          ...this.settings([reply.orchestrator]), without: left,
        }),
      ]
      : [];
    this.body.replaceChildren(
      figure.root,
      table({ name: "ablation-table", title: "Which workers carry the score", columns, rows: reply.workers, key: (row) => row.without }),
      ...more,
    );
    figure.redraw(true);
  }
}
