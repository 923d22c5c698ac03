/** Differences and statistics of Views. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { View } from "../src/api/arrays.ts";
import { deviationView, differenceOf, isView, meanView } from "../src/math/views.ts";

function heatmap(values: number[], shape: number[] = [2, 2], extra: Partial<View> = {}): View {
  const data = Float32Array.from(values);
  return { kind: "heatmap", arrays: { values: { data, shape } }, labels: {}, ticks: {}, scale: { cmap: "viridis", vmin: 0, vmax: 9 }, caption: "c", ...extra };
}

function valuesOf(made: ReturnType<typeof differenceOf>): number[] {
  assert.ok(isView(made), JSON.stringify(made));
  return [...made.arrays["values"]!.data];
}

test("a difference is cell by cell, around 0", () => {
  const made = differenceOf(heatmap([1, 2, 3, 4]), heatmap([1, 0, 5, 4.5]));
  assert.deepEqual(valuesOf(made), [0, 2, -2, -0.5]);
  assert.ok(isView(made));
  assert.equal(made.scale["center"], 0);
  assert.equal(made.scale["vmin"], undefined);
});

test("other shapes are refused, with both shapes", () => {
  const made = differenceOf(heatmap([1, 2, 3, 4]), heatmap([1, 2, 3, 4], [1, 4]));
  assert.ok(!isView(made));
  assert.match(made.obstacle, /2×2.*1×4/);
});

test("mean and deviation are per cell, with N - 1", () => {
  const views = [heatmap([1, 2, 3, 4]), heatmap([3, 2, 5, 8])];
  assert.deepEqual(valuesOf(meanView(views)), [2, 2, 4, 6]);
  const expected = [Math.SQRT2, 0, Math.SQRT2, Math.sqrt(8)];
  valuesOf(deviationView(views)).forEach((v, i) => assert.ok(Math.abs(v - expected[i]!) < 1e-12));
  assert.ok(!isView(deviationView(views.slice(1))));
});

test("lines over other places are refused, over the same are subtracted", () => {
  const line = (x: number[], y: number[]): View => ({
    kind: "line", labels: {}, ticks: {}, scale: {}, caption: "",
    arrays: { x: { data: Float64Array.from(x), shape: [2] }, y: { data: Float64Array.from(y), shape: [2] } },
  });
  const made = differenceOf(line([0, 1], [5, 6]), line([0, 1], [1, 1]));
  assert.ok(isView(made));
  assert.deepEqual([...made.arrays["y"]!.data], [4, 5]);
  assert.deepEqual([...made.arrays["x"]!.data], [0, 1]);
  assert.ok(!isView(differenceOf(line([0, 1], [5, 6]), line([0, 2], [1, 1]))));
});

test("points of a scatter belong to no cells", () => {
  const made = differenceOf(heatmap([1], [1, 1], { kind: "scatter" }), heatmap([1], [1, 1], { kind: "scatter" }));
  assert.ok(!isView(made));
});

test("the panels of a grid are subtracted each", () => {
  const grid = (a: number, b: number): View => ({
    ...heatmap([]), kind: "grid", labels: { panels: [{ kind: "heatmap" }, { kind: "bar" }] },
    arrays: { "0/values": { data: Float32Array.of(a), shape: [1, 1] }, "1/x": { data: Float32Array.of(0), shape: [1] }, "1/y": { data: Float32Array.of(b), shape: [1] } },
  });
  const made = differenceOf(grid(5, 7), grid(2, 3));
  assert.ok(isView(made));
  assert.deepEqual([made.arrays["0/values"]!.data[0], made.arrays["1/y"]!.data[0], made.arrays["1/x"]!.data[0]], [3, 4, 0]);
});

test("what is masked in both stays masked in their difference", () => {
  assert.deepEqual(valuesOf(differenceOf(heatmap([-Infinity, 1, NaN, Infinity]), heatmap([-Infinity, -Infinity, 1, -Infinity]))), [-Infinity, Infinity, NaN, Infinity]);
});
