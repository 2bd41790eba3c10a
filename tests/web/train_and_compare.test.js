// What charts and tables of the Train and Compare pages are made of.

import assert from "node:assert/strict";
import { test } from "node:test";

import { difference, interval, palette, points, price } from "../../assets/web/compare/formats.js";
import { putBeside, writeCsv } from "../../assets/web/train/curves/beside.js";
import { Columns } from "../../assets/web/train/curves/columns.js";
import { about, bytes, shareInterval } from "../../assets/web/train/formats.js";
import { describePlace, isCluster, isRented } from "../../assets/web/train/places.js";

test("rows of one step become one place, and gaps stay gaps", () => {
  const columns = new Columns();
  columns.take([{ step: 1, loss: 2 }, { step: 1, reward: 0.5 }, { step: 2, loss: 1 }, { step: 9, stage: "evaluate", loss: 7 }]);
  assert.deepEqual(columns.steps, [1, 2]);
  assert.deepEqual(columns.series, { loss: [2, 1], reward: [0.5, null] });
  assert.deepEqual([columns.last("reward"), columns.last("none")], [0.5, null]);
});

const SHORT = new Columns({ steps: [1, 2], series: { loss: [2, 1], "term/a,b": [0.5, null] } });
const LONG = new Columns({ steps: [2, 3, 9], series: { loss: [4, 3, 1] } });

test("another job's curves stand beside one's own over the steps of both, within what is shown", () => {
  const lines = [{ key: "loss", label: "", values: [2, 1] }, { key: "term/a,b", label: "a,b", values: [0.5, null] }];
  const both = putBeside([1, 2], lines, LONG, "other", [1, 5]);
  assert.deepEqual(both.steps, [1, 2, 3]);
  assert.deepEqual(both.lines.map(({ label, pair, values }) => [label, pair, values]), [
    ["this job", undefined, [2, 1, null]], ["a,b", undefined, [0.5, null, null]], ["other", 0, [null, 4, 3]],
  ]);
});

test("a chart of what the other job has not measured stays as it is", () => {
  const lines = [{ key: "reward", label: "", values: [2, 1] }];
  assert.deepEqual(putBeside([1, 2], lines, LONG, "other", [1, 9]), { steps: [1, 2], lines });
});

test("curves are saved with a row a step, and names with commas in quotes", () => {
  assert.equal(writeCsv(SHORT, null), 'step,loss,"term/a,b"\n1,2,0.5\n2,1,\n');
  assert.equal(writeCsv(SHORT, { columns: LONG, label: "other" }).split("\n")[0], 'step,loss,"term/a,b",loss (other)');
  assert.deepEqual(writeCsv(SHORT, { columns: LONG, label: "other" }).split("\n").slice(1, 5), ["1,2,0.5,", "2,1,,4", "3,,,3", "9,,,1"]);
});

test("a difference has a sign unless it rounds to nothing", () => {
  assert.deepEqual([points(0.042), points(-0.01), points(-0.0001)], ["+4.2", "−1.0", "0.0"]);
  assert.equal(difference([0.042, -0.01, 0.094]), "+4.2 [−1.0, +9.4]");
  assert.equal(interval([0.62, 0.51, 0.73]), "62 % [51, 73]");
});

test("colours begin again after the last", () => {
  const colours = [...palette([..."abcdefghi"]).values()];
  assert.equal(colours[0], colours[8]);
  assert.equal(new Set(colours).size, 8);
});

test("sizes, prices and long times are said as people say them", () => {
  assert.deepEqual([bytes(512), bytes(1_250), bytes(48_000_000), bytes(null)], ["512 B", "1.3 kB", "48 MB", "–"]);
  assert.deepEqual([price(0), price(0.0012), price(3)], ["$0", "$0.0012", "$3.00"]);
  assert.deepEqual([about(0.2), about(600), about(7_200), about(200_000)], ["1 s", "10 min", "2.0 h", "2.3 days"]);
});

test("an evaluation without an interval is shown all the same", () => {
  assert.deepEqual([shareInterval([0.5, 0.75]), shareInterval(null)], ["50 % to 75 %", "–"]);
});

test("a place is rented, a cluster or here", () => {
  assert.deepEqual(["here", "hf:l4x1", "ray://a:1"].map((place) => [isRented(place), isCluster(place)]), [[false, false], [true, false], [false, true]]);
  assert.equal(describePlace({ where: "here", gpus: [0, 1], processes: 2 }), "GPU 0, 1 · 2\u00a0processes");
});
