/** The view and the address: a round trip, and addresses that somebody wrote. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { format, parse, START, type Place } from "../src/state/url.ts";

test("the start is the empty query", () => {
  assert.equal(format(START), "");
  assert.deepEqual(parse(""), START);
});

test("every field makes the round trip", () => {
  const place: Place = {
    page: "compare", runs: [{ key: "ab12", slot: 3 }, { key: "cd", slot: 0 }], names: ["a", "b&c=d"], step: 0, exact: true,
    align: "metric", until: { metric: "train/loss", below: 0.5 }, metrics: ["x y"], x: "tokens", logX: true, logY: true, smooth: 0.9,
    shared: false, robust: true, difference: [{ run: "ab12", step: 10 }, { run: "cd", step: null }], statistic: "std", over: "config:lr",
    anyway: ["a"], zoom: [0, 4, 2, 8], wipe: true, filter: "lr<0.1 ü", sort: "name", group: "project", columns: ["metric:loss"],
    onlyDifferent: false, run: "ab12", name: "n", part: "p", panel: 1, writer: "w", seq: 0, row: 2, theme: "dark",
  };
  assert.deepEqual(parse(format(place)), place);
  for (const [field, value] of Object.entries(place)) assert.notDeepEqual(value, START[field as keyof Place], field);
});

test("what makes no sense is as at the start", () => {
  assert.deepEqual(parse("?page=x&step=NaN&r=../etc.1&r=ab.x&zoom=3,1,0,2&diff=ab&theme=pink&smooth="), START);
});

test("a colour belongs to one run", () => {
  assert.deepEqual(parse("?r=aa.0&r=bb.0&r=aa.1").runs, [{ key: "aa", slot: 0 }]);
});
