/** The table of runs, the colours of the chosen, and names that can be told apart. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Run } from "../src/api/types.ts";
import { shortNames } from "../src/math/names.ts";
import { niceTicks, short } from "../src/math/numbers.ts";
import { smoothed } from "../src/math/smooth.ts";
import { configDiff, grouped, matches, sorted } from "../src/math/table.ts";
import { combineJson, difference } from "../src/math/tables.ts";
import { toggled, withoutRun, withRun } from "../src/state/selection.ts";

function run(changes: Partial<Run>): Run {
  return { key: "k", root: 0, project: "p", name: "n", id: "i", group: null, tags: [], state: "running", created: 0, config: {}, last: {}, last_step: null, analyses: [], counts: {}, metrics: [], step_count: 0, damaged: false, indexed: true, ...changes };
}

test("a chosen run keeps its colour when others come and go", () => {
  let chosen = withRun(withRun(withRun([], "a"), "b"), "c");
  chosen = withoutRun(chosen, "a");
  assert.deepEqual(chosen, [{ key: "b", slot: 1 }, { key: "c", slot: 2 }]);
  chosen = toggled(chosen, "d");
  assert.deepEqual(chosen.at(-1), { key: "d", slot: 0 });
  assert.deepEqual(toggled(chosen, "b").map((c) => c.slot), [2, 0]);
});

test("the filter knows words, values and their negation", () => {
  const one = run({ name: "Train-GPT", tags: ["base"], config: { optim: { lr: 0.001 } }, last: { "train/loss": 1.5 } });
  for (const yes of ["gpt", "state:running lr<0.01", "optim.lr=0.001", "train/loss>=1.5", "tag:base", "-wide", ""]) assert.ok(matches(one, yes), yes);
  for (const no of ["-gpt", "state:stopped", "lr>0.01", "nothing<1", "tag:other"]) assert.ok(!matches(one, no), no);
});

test("what has no value is sorted last, both ways", () => {
  const runs = [run({ key: "a" }), run({ key: "b", last: { l: 2 } }), run({ key: "c", last: { l: 1 } })];
  assert.deepEqual(sorted(runs, "metric:l").map((r) => r.key), ["c", "b", "a"]);
  assert.deepEqual(sorted(runs, "-metric:l").map((r) => r.key), ["b", "c", "a"]);
});

test("groups are by value", () => {
  const runs = [run({ config: { lr: 1 } }), run({ config: { lr: 2 } }), run({ config: { lr: 1 } }), run({})];
  assert.deepEqual(grouped(runs, "config:lr").map(([name, members]) => [name, members.length]), [["1", 2], ["2", 1], ["none", 1]]);
});

test("a config diff says what differs and what is not set", () => {
  const rows = configDiff([run({ config: { a: { b: 1 }, c: 2 } }), run({ config: { a: { b: 2 } } })]);
  assert.deepEqual(rows, [{ key: "a.b", values: ["1", "2"], differs: true }, { key: "c", values: ["2", null], differs: true }]);
});

test("long names with equal beginnings can be told apart", () => {
  const long = "x".repeat(100);
  const names = shortNames([{ name: `${long}-one`, id: "1" }, { name: `${long}-two`, id: "2" }, { name: "same", id: "3" }, { name: "same", id: "4" }]);
  assert.equal(new Set(names).size, 4);
  assert.ok(names.every((name) => name.length <= 32), names.join());
});

test("numbers are short and honest", () => {
  assert.deepEqual([short(0.00001234), short(-1234567), short("NaN"), short(Infinity), short(0), short(0.1 + 0.2)], ["1.23e−5", "−1.23e6", "NaN", "∞", "0", "0.3"]);
  assert.deepEqual(niceTicks(0, 1, 5), [0, 0.2, 0.4, 0.6, 0.8, 1]);
});

test("smoothing begins at the first value and keeps gaps", () => {
  assert.deepEqual(smoothed([1, null, 1], 0.5), [1, null, 1]);
  assert.deepEqual(smoothed([1, 2], 0), [1, 2]);
});

test("tables are subtracted where both have numbers", () => {
  assert.deepEqual(combineJson([{ a: 3, b: ["x", 1], c: 1 }, { a: 1, b: ["x", 4] }], difference), { a: 2, b: ["x", -3] });
});
