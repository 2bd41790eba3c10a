// Suites: the table with intervals, the Pareto plot, families and levels, worker use and turns, and the tasks behind the
// improved and regressed counts. All figures are the server's; this file asks and draws.

import { count, el, seconds } from "../lib/dom.js";
import { Figure, redrawAll, table } from "./figure.js";
import { emptyState, Filters } from "./filters.js";
import { dotPlot, scatter, shareBars } from "./charts.js";
import { TaskList } from "./tasks.js";
import { all, ask, one, put } from "./address.js";
import { difference, formatFixed, interval, joinSentences, palette, percent, plural, price } from "./formats.js";

/** @typedef {import("./page.js").ComparePage} ComparePage */
/** @typedef {import("../types").SuiteRow} SuiteRow */
/** @typedef {import("./figure.js").Column<SuiteRow>[]} Columns */

const FEW = 5; // orchestrators that a figure by family can show
/** @type {["cost" | "tokens" | "p50_s", string, (value: number) => string][]} */
const PRICES = [
  ["cost", "Cost an episode", price], ["tokens", "Tokens an episode", (value) => count(Math.round(value))],
  ["p50_s", "Median seconds", seconds],
];
const TURNS = ["1", "2", "3", "4", "5", "6"];

export class SuiteView {
  /** @param {ComparePage} page */
  constructor(page) {
    this.page = page;
    this.root = el("div.train-curves-suite");
    this.filters = new Filters(
      [
        ["reference", "Reference", null], ["condition", "Pool condition", null], ["family", "Family", "All families"],
        ["level", "Level", "All levels"],
      ],
      () => this.show(true),
    );
    this.note = el("p.train-mute", { role: "status" });
    this.body = el("div.compare-body");
    this.tasks = new TaskList(page);
    this.only = el("input", { type: "checkbox" });
    this.only.checked = one("picked") === "1";
    this.only.addEventListener("change", () => {
      put({ picked: this.only.checked ? "1" : null });
      this.show(true);
    });
    this.filters.root.append(el("label.traces-nested", {}, this.only, "only those chosen above"));
    this.root.append(this.filters.root, this.note, this.tasks.root, this.body);
  }

  filterValues() {
    return {
      job: all("job"), reference: one("reference"), condition: one("condition"), family: one("family"), level: one("level"),
      only: one("picked") === "1" ? all("o") : [],
    };
  }

  /** @param {boolean} again */
  async show(again = false) {
    const filters = this.filterValues();
    if (JSON.stringify(filters) === this.shown && !again) return;
    this.shown = JSON.stringify(filters);
    const request = (this.waiting = Symbol());
    const reply = await ask("suite", filters);
    if (request !== this.waiting) return;
    this.reply = reply;
    if (reply.ok) this.draw(reply);
    else {
      this.note.textContent = "";
      this.filters.root.hidden = !["family", "level", "condition", "picked"].some(one);
      this.tasks.clear();
      this.body.replaceChildren(emptyState(reply.hint, this.page));
    }
  }

  /** @param {import("../types").SuiteDocument} reply */
  draw(reply) {
    const names = reply.rows.map((row) => row.orchestrator);
    const picked = all("o").filter((name) => names.includes(name));
    this.colours = palette([...picked, ...names.filter((name) => !picked.includes(name))]); // as above
    this.filters.root.hidden = false;
    this.filters.fill(
      { reference: names, condition: [...reply.choices.conditions, "all"], family: reply.choices.families, level: reply.choices.levels },
      (name, value) =>
        (name === "reference" ? `against ${this.page.label(value)}`
          : name === "level" ? `level ${value}`
          : value === "all" ? "all conditions"
          : name === "condition" ? `${value} pool`
          : value),
    );
    this.filters.selects.reference.select.value = reply.reference;
    this.filters.selects.condition.select.value = reply.condition;
    this.note.textContent = this.describe(reply);
    const parts = [
      this.scores(reply), this.pareto(reply), this.equalCost(reply), this.costs(reply), this.protocol(reply), this.cells(reply),
      this.workers(reply), this.turns(reply),
    ];
    this.body.replaceChildren(...parts.map((part) => (part instanceof Figure ? part.root : part)));
    redrawAll(parts.filter((part) => part instanceof Figure));
    this.tasks.follow(this.filterValues());
  }

  /** @param {import("../types").SuiteDocument} reply */
  describe(reply) {
    const most = reply.rows.reduce((best, row) => (row.episodes > best.episodes ? row : best), reply.rows[0]);
    const best = reply.best_single ? ` The best single worker is ${reply.best_single}.` : "";
    const few = most.tasks < 200 ? " Under 200 tasks a gap of five points is within chance." : "";
    return `${plural(reply.rows.length, "orchestrator")}, ${plural(most.tasks, "task")}, ${plural(most.k, "sample")} each. Intervals are 95 %, resampled over tasks.${few}${best}${joinSentences(reply.judges)}`;
  }

  /**
   * @param {string} reference
   * @returns {Columns[number]}
   */
  name(reference) {
    return {
      label: "Orchestrator", text: (other) => other.orchestrator,
      node: (other) => this.nameNode(other.orchestrator, other.orchestrator === reference),
    };
  }

  /**
   * @param {string} name
   * @param {boolean} reference
   */
  nameNode(name, reference) {
    const dot = el("i.compare-query-dot");
    dot.style.background = this.colours.get(name);
    const node = el("span.compare-query-named", { title: name }, dot, this.page.label(name));
    if (reference) node.append(el("span.compare-graph-chip", {}, "reference"));
    return node;
  }

  /** @param {import("../types").SuiteDocument} reply */
  scores(reply) {
    const k = Math.max(...reply.rows.map((row) => row.k));
    /** @type {(label: string, key: "mean" | "pass_at_k" | "pass_all_k", title: string) => Columns[number]} */
    const estimate = (label, key, title) => ({
      label, title, number: true, text: (row) => interval(row[key]),
      csv: [[key, (row) => row[key][0]], [`${key}_low`, (row) => row[key][1]], [`${key}_high`, (row) => row[key][2]]],
    });
    /** @param {SuiteRow} row */
    const counts = (row) => (row.paired ? `${row.paired.wins} / ${row.paired.losses} / ${row.paired.ties}` : "–");
    /** @type {Columns} */
    const columns = [
      this.name(reply.reference),
      { label: "Tasks", number: true, text: (row) => String(row.tasks), csv: [["tasks", (row) => row.tasks], ["samples", (row) => row.k]] },
      estimate(k > 1 ? `mean@${k}` : "Right", "mean", "Share of right answers, every task counting the same"),
      ...(k > 1
        ? [
          estimate(`pass@${k}`, "pass_at_k", "Chance that at least one of the samples is right"),
          estimate(`pass^${k}`, "pass_all_k", "Chance that all samples are right"),
        ]
        : []),
      {
        label: "Difference in points", title: "Against the reference, on the tasks that both have done", number: true,
        text: (row) => (row.paired ? difference(row.paired.difference) : "–"), node: (row) => gap(row.paired),
        csv: [
          ["difference", (row) => row.paired?.difference[0]], ["difference_low", (row) => row.paired?.difference[1]],
          ["difference_high", (row) => row.paired?.difference[2]], ["p_sign_test", (row) => row.paired?.p],
        ],
      },
      {
        label: "Improved / regressed / equal", text: counts, node: (row) => this.counts(row),
        csv: [["improved", (row) => row.paired?.wins], ["regressed", (row) => row.paired?.losses], ["equal", (row) => row.paired?.ties]],
      },
    ];
    return table({
      name: "scores", title: "Scores", about: "Press a count to see its tasks.", columns, rows: reply.rows, key: (row) => row.orchestrator,
    });
  }

  /**
   * Counts that open their tasks.
   * @param {import("../types").SuiteRow} row
   */
  counts(row) {
    if (!row.paired) return el("span.train-mute", {}, "–");
    const box = el("span.train-curves-counts");
    /** @type {[import("./tasks.js").Which, number, string][]} */
    const parts = [["improved", row.paired.wins, "▲"], ["regressed", row.paired.losses, "▼"], ["equal", row.paired.ties, "="]];
    for (const [which, number, sign] of parts) {
      const button = el(
        "button.train-curves-count",
        { type: "button", "data-which": which, "aria-label": `${number} tasks ${which}, ${this.page.label(row.orchestrator)}` },
        `${sign} ${number}`,
      );
      button.disabled = !number;
      button.addEventListener("click", () => this.tasks.open(row.orchestrator, which));
      box.append(button);
    }
    return box;
  }

  /** @param {import("../types").SuiteDocument} reply */
  costs(reply) {
    /** @type {Columns} */
    const columns = [
      this.name(reply.reference),
      {
        label: "Cost an episode", number: true, text: (row) => price(row.cost_per_episode),
        csv: [["cost_per_episode", (row) => row.cost_per_episode], ["cost_total", (row) => row.cost]],
      },
      {
        label: "Tokens an episode", number: true, text: (row) => count(Math.round(row.tokens_per_episode)),
        csv: [["tokens_per_episode", (row) => row.tokens_per_episode]],
      },
      { label: "Time p50", number: true, text: (row) => seconds(row.p50_s), csv: [["p50_s", (row) => row.p50_s]] },
      { label: "Time p95", number: true, text: (row) => seconds(row.p95_s), csv: [["p95_s", (row) => row.p95_s]] },
      {
        label: "Speed-up", number: true, title: "Serial time over wall time",
        text: (row) => (row.speedup ? `${row.speedup.toFixed(2)}×` : "–"), csv: [["speedup", (row) => row.speedup]],
      },
      { label: "Turns", number: true, text: (row) => formatFixed(row.turns), csv: [["turns", (row) => row.turns]] },
      { label: "Steps", number: true, text: (row) => formatFixed(row.steps), csv: [["steps", (row) => row.steps]] },
      { label: "Depth", number: true, text: (row) => formatFixed(row.depth), csv: [["depth", (row) => row.depth]] },
      { label: "Width", number: true, text: (row) => formatFixed(row.width), csv: [["width", (row) => row.width]] },
    ];
    return table({ name: "costs", title: "Cost and time", columns, rows: reply.rows, key: (row) => row.orchestrator });
  }

  /** @param {import("../types").SuiteDocument} reply */
  protocol(reply) {
    /** @type {(name: string) => Columns[number]} */
    const status =
      (name) => ({ label: name, number: true, text: (row) => count(row.statuses[name]), csv: [[name, (row) => row.statuses[name] || 0]] });
    /** @type {Columns} */
    const columns = [
      this.name(reply.reference),
      { label: "Valid turns", number: true, text: (row) => percent(row.valid_turns), csv: [["valid_turns", (row) => row.valid_turns]] },
      ...["OK", "PARSE_ERR", "EXEC_ERR", "TIMEOUT"].map(status),
      {
        label: "Recovery", number: true, title: "Episodes with a failed call that were right all the same",
        text: (row) => (row.recovery === null ? "–" : `${percent(row.recovery)} of ${row.failed_episodes}`),
        csv: [["recovery", (row) => row.recovery], ["failed_episodes", (row) => row.failed_episodes]],
      },
      {
        label: "Access precision", number: true, title: "Against the reference plans: of what was granted, how much was needed",
        text: (row) => percent(row.access_precision), csv: [["access_precision", (row) => row.access_precision]],
      },
      {
        label: "Access recall", number: true, title: "Of what was needed, how much was granted", text: (row) => percent(row.access_recall),
        csv: [["access_recall", (row) => row.access_recall]],
      },
      {
        label: "Worker entropy", number: true, title: "In bits; 0 is one worker alone", text: (row) => formatFixed(row.entropy),
        csv: [["entropy_bits", (row) => row.entropy]],
      },
    ];
    return table({
      name: "protocol", title: "Protocol and access", about: "Steps by how they ended; access lists against the reference plans.", columns,
      rows: reply.rows, key: (row) => row.orchestrator,
    });
  }

  /**
   * The price that the plot and the comparison at equal cost go by.
   * @param {import("../types").SuiteDocument} reply
   */
  axis(reply) {
    /** @param {"cost" | "tokens" | "p50_s"} name */
    const priced = (name) => reply.pareto[name].some((point) => point.price > 0);
    const chosen = PRICES.find(([name]) => name === one("price")) || PRICES.find(([name]) => priced(name)) || PRICES[0];
    return { axis: chosen[0], label: chosen[1], written: chosen[2], priced: priced("cost") };
  }

  /**
   * The price by which baselines can be mixed: what an episode takes on average. Medians do not mix.
   * @param {import("../types").SuiteDocument} reply
   * @returns {["cost" | "tokens", string, (value: number) => string]}
   */
  meanAxis(reply) {
    const { axis, label, written, priced } = this.axis(reply);
    if (axis !== "p50_s") return [axis, label, written];
    const [, words, write] = PRICES.find(([name]) => name === (priced ? "cost" : "tokens"));
    return [priced ? "cost" : "tokens", words, write];
  }

  /** @param {import("../types").SuiteDocument} reply */
  pareto(reply) {
    const { axis, label, written, priced } = this.axis(reply);
    /** @type {(import("./charts.js").Dot & { key: string })[]} */
    const dots = reply.pareto[axis].map((point) => ({
      name: this.page.label(point.name), key: point.name, x: point.price, y: [point.mean.mean, point.mean.low, point.mean.high],
      efficient: point.efficient, note: `${interval([point.mean.mean, point.mean.low, point.mean.high])}, ${written(point.price)}`,
    }));
    const hull = axis === "p50_s" ? [] : reply.hull[axis];
    const colours = new Map(dots.map((dot) => [dot.name, this.colours.get(dot.key)]));
    const figure = new Figure({
      name: "pareto", title: "Accuracy against price",
      about: `Filled: none is as cheap and better, or as good and cheaper.${hull.length ? " Solid line: the best mixtures of baselines at each price." : ""}`,
      draw: (width) => scatter(width, dots, colours, {
        label, written, hull: hull.map((point) => [point.price, point.mean]),
      }),
      data: () => ({
        columns: ["orchestrator", axis, "mean", "low", "high", "efficient"],
        rows: dots.map((dot) => [dot.key, dot.x, ...dot.y, dot.efficient ? "yes" : "no"]),
      }),
    });
    const choose = el("select.page-select.train-curves-price", { "aria-label": "Price" });
    for (const [name, words] of PRICES) choose.append(el("option", { value: name }, words));
    choose.value = axis;
    choose.addEventListener("change", () => {
      put({ price: choose.value });
      this.draw(this.reply);
    });
    figure.root.querySelector(".compare-figure-exports").prepend(choose);
    if (!priced && axis === "cost") figure.root.append(el(
      "p.train-mute", {}, "No worker of this pool has a price, so every episode cost nothing. Prices are set on the Pool page.",
    ));
    return figure;
  }

  /**
   * Each orchestrator against the mixture of baselines that costs as much.
   * @param {import("../types").SuiteDocument} reply
   */
  equalCost(reply) {
    const [axis, label, written] = this.meanAxis(reply);
    const compared = reply.equal_cost[axis];
    const prices = new Map(reply.pareto[axis].map((point) => [point.name, point.price]));
    const rows = reply.rows.filter((row) => compared[row.orchestrator]);
    /** @param {SuiteRow} row */
    const mixture = (row) => this.describeMixture(compared[row.orchestrator].shares);
    /** @type {Columns} */
    const columns = [
      this.name(reply.reference),
      {
        label, number: true, text: (row) => written(prices.get(row.orchestrator)), csv: [[axis, (row) => prices.get(row.orchestrator)]],
      },
      {
        label: "Right", number: true, text: (row) => interval(row.mean),
        csv: [["mean", (row) => row.mean[0]], ["low", (row) => row.mean[1]], ["high", (row) => row.mean[2]]],
      },
      {
        label: "Difference in points", number: true, text: (row) => difference(compared[row.orchestrator].difference),
        node: (row) => gap({ ...compared[row.orchestrator], unpaired: 0 }),
        csv: [
          ["difference", (row) => compared[row.orchestrator].difference[0]],
          ["difference_low", (row) => compared[row.orchestrator].difference[1]],
          ["difference_high", (row) => compared[row.orchestrator].difference[2]],
        ],
      },
      {
        label: "Baselines for the same price", text: mixture, node: (row) => el("span.compare-mixture", {}, mixture(row)),
        csv: [["mixture", mixture]], title: "Each is asked for this share of the tasks; what is left over is not answered",
      },
    ];
    return table({
      name: "equal-cost", title: "Against the baselines at equal cost",
      about: rows.length
        ? "Two baselines, drawn by lot for each task, cost and score what lies between them. This is the best such mixture for an orchestrator's own price."
        : "Evaluate some baselines, too: New evaluation ticks all of them at once.",
      columns, rows, key: (row) => row.orchestrator,
    });
  }

  /** @param {Record<string, number>} shares */
  describeMixture(shares) {
    const parts = Object.entries(shares).filter(([, share]) => share >= 0.005);
    const named = parts.map(([name, share]) => (share > 0.995 ? this.page.label(name) : `${percent(share)} ${this.page.label(name)}`));
    return named.join(" + ") || "nobody";
  }

  /** @param {import("../types").SuiteDocument} reply */
  cells(reply) {
    const shown = this.few(reply);
    const left = reply.rows.length - shown.length;
    const groups = reply.cells.map((cell) => ({
      label: cell.level ? `${cell.family} ${cell.level}` : cell.family,
      points: Object.entries(cell.by).filter(([name]) => shown.includes(name)).map(([name, score]) => ({
        name: this.page.label(name), key: name, value: score.mean, note: `${interval(score.mean)}, ${plural(score.tasks, "task")}`,
      })),
    }));
    const colours = new Map([...this.colours].map(([name, colour]) => [this.page.label(name), colour]));
    return new Figure({
      name: "families", title: "By family and level",
      about: left
        ? `Mean with 95 % interval, of the reference and a few others (choose them above); the CSV has the other ${left}, too.`
        : "Mean with 95 % interval.",
      draw: (width) => dotPlot(width, groups, colours, { written: (value) => percent(value) }),
      data: () => ({
        columns: ["family", "level", "orchestrator", "tasks", "mean", "low", "high"],
        rows: reply.cells.flatMap((cell) => Object.entries(cell.by).map(([name, scores]) => [
          cell.family, cell.level, name, scores.tasks, ...scores.mean,
        ])),
      }),
    });
  }

  /**
   * Whom a crowded figure shows: the reference and the chosen, or the best ones.
   * @param {import("../types").SuiteDocument} reply
   */
  few(reply) {
    const names = reply.rows.map((row) => row.orchestrator);
    if (names.length <= FEW) return names;
    const picked = all("o").filter((name) => names.includes(name));
    const best = [...reply.rows].sort((a, b) => b.mean[0] - a.mean[0]).map((row) => row.orchestrator);
    return [...new Set([reply.reference, ...(picked.length ? picked : best)])].slice(0, FEW);
  }

  /** @param {import("../types").SuiteDocument} reply */
  workers(reply) {
    const names = [...new Set(reply.rows.flatMap((row) => Object.keys(row.shares)))];
    const rows = reply.rows.map((row) => ({ label: this.page.label(row.orchestrator), parts: row.shares }));
    return new Figure({
      name: "workers", title: "Which workers are called", about: "Share of all steps.",
      draw: (width) => shareBars(width, rows, names, palette(names)),
      data: () => ({
        columns: ["orchestrator", ...names],
        rows: reply.rows.map((row) => [row.orchestrator, ...names.map((name) => row.shares[name] || 0)]),
      }),
    });
  }

  /** @param {import("../types").SuiteDocument} reply */
  turns(reply) {
    const names = TURNS.filter((number) => Object.values(reply.turns).some((counts) => counts[number]));
    /** @param {string} number */
    const word = (number) => (number === "6" ? "6 or more turns" : plural(Number(number), "turn"));
    const shown = names.map(word);
    const rows = reply.rows.map((row) => ({
      label: this.page.label(row.orchestrator),
      parts: Object.fromEntries(names.map((number) => [word(number), reply.turns[row.orchestrator][number] || 0])),
    }));
    return new Figure({
      name: "turns", title: "How many turns an episode takes", about: "Share of episodes.",
      draw: (width) => shareBars(width, rows, shown, palette(shown)),
      data: () => ({
        columns: ["orchestrator", ...shown],
        rows: reply.rows.map((row) => [row.orchestrator, ...names.map((number) => reply.turns[row.orchestrator][number] || 0)]),
      }),
    });
  }
}

/** @param {{ difference: import("./formats.js").Interval, tasks: number, unpaired: number, p?: number } | null} paired */
function gap(paired) {
  if (!paired) return el("span.train-mute", {}, "–");
  const sure = paired.difference[1] > 0 ? "better" : paired.difference[2] < 0 ? "worse" : "open";
  const words = { better: "better", worse: "worse", open: "within chance" };
  return el(
    "span.train-curves-gap",
    {
      "data-sure": sure,
      title: `${paired.tasks} tasks in common${paired.unpaired ? `, ${paired.unpaired} not` : ""}${paired.p === undefined ? "" : `; sign test p = ${paired.p.toPrecision(2)}`}`,
    },
    el("b", {}, difference(paired.difference)), el("small", {}, words[sure]),
  );
}
