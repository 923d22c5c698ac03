/** Arithmetic on arrays of one shape: differences, means, deviations, ranges. */

import type { Block } from "../api/arrays.ts";

export function sameShape(a: Block, b: Block): boolean {
  return a.shape.length === b.shape.length && a.shape.every((n, i) => n === b.shape[i]);
}

/** What is infinite in both, such as behind a mask, stays so instead of becoming NaN. */
function minus(a: number, b: number): number {
  return a === b && !Number.isFinite(a) ? a : a - b;
}

export function subtract(a: Block, b: Block): Block {
  const data = new Float64Array(a.data.length);
  for (let i = 0; i < data.length; i++) data[i] = minus(a.data[i]!, b.data[i]!);
  return { data, shape: a.shape };
}

export function meanOf(blocks: readonly Block[]): Block {
  const first = blocks[0]!;
  const data = new Float64Array(first.data.length);
  for (const block of blocks) {
    for (let i = 0; i < data.length; i++) data[i]! += block.data[i]! / blocks.length;
  }
  return { data, shape: first.shape };
}

/** The standard deviation over the arrays, with N - 1; NaN for a single one. */
export function deviationOf(blocks: readonly Block[]): Block {
  const mean = meanOf(blocks);
  const data = new Float64Array(mean.data.length);
  for (const block of blocks) {
    for (let i = 0; i < data.length; i++) data[i]! += minus(block.data[i]!, mean.data[i]!) ** 2;
  }
  const freedom = blocks.length - 1;
  for (let i = 0; i < data.length; i++) {
    data[i] = freedom ? Math.sqrt(data[i]! / freedom) : NaN;
  }
  return { data, shape: mean.shape };
}

/** The lowest and highest finite number; null when there is none. */
export function extentOf(blocks: readonly Block[]): [number, number] | null {
  let low = Infinity;
  let high = -Infinity;
  for (const { data } of blocks) {
    for (const value of data) {
      if (!Number.isFinite(value)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  return low <= high ? [low, high] : null;
}

const SAMPLE = 1 << 16;

/** The 2nd and 98th percentile of the finite numbers, as the figures' `robust`. */
export function robustExtentOf(blocks: readonly Block[]): [number, number] | null {
  const total = blocks.reduce((n, block) => n + block.data.length, 0);
  const stride = Math.max(1, Math.floor(total / SAMPLE));
  const kept: number[] = [];
  let seen = 0;
  for (const { data } of blocks) {
    for (let i = 0; i < data.length; i++, seen++) {
      if (seen % stride === 0 && Number.isFinite(data[i])) kept.push(data[i]!);
    }
  }
  if (!kept.length) return null;
  const sorted = Float64Array.from(kept).sort();
  return [quantile(sorted, 0.02), quantile(sorted, 0.98)];
}

function quantile(sorted: Float64Array, share: number): number {
  const place = share * (sorted.length - 1);
  const below = Math.floor(place);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below]! + (sorted[above]! - sorted[below]!) * (place - below);
}
