/** Steps: the union over runs, the record that stands for a step. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { closest, nearestEarlier, unionOf } from "../src/math/steps.ts";

test("the slider has every step of every run once, in order", () => {
  assert.deepEqual(unionOf([[10, 20, 30], [15, 30], []]), [10, 15, 20, 30]);
});

test("the nearest earlier record stands for a step", () => {
  assert.equal(nearestEarlier([15, 30], 20, false), 15);
  assert.equal(nearestEarlier([15, 30], 30, false), 30);
  assert.equal(nearestEarlier([15, 30], 14, false), null);
  assert.equal(nearestEarlier([], 14, false), null);
});

test("exact only accepts no earlier record", () => {
  assert.equal(nearestEarlier([15, 30], 20, true), null);
  assert.equal(nearestEarlier([15, 30], 15, true), 15);
});

test("a click goes to the closest step", () => {
  assert.equal(closest([0, 10, 20], 16), 20);
  assert.equal(closest([0, 10, 20], 15), 10);
  assert.equal(closest([5], 1), 5);
  assert.equal(closest([], 1), null);
});
