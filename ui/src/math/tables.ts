/** Differences and statistics of JSON tables: numbers at the same place, put together. */

import type { Json } from "../api/types.ts";

/** Put the numbers at each place that all values have together; other places stay out. */
export function combineJson(values: readonly Json[], join: (numbers: number[]) => number): Json {
  const [first] = values;
  if (values.every((v) => numeric(v))) {
    const found = join(values.map(Number));
    return Number.isFinite(found) ? found : String(found);
  }
  if (values.every((v) => Array.isArray(v))) {
    const lists = values as Json[][];
    const count = Math.min(...lists.map((list) => list.length));
    return Array.from({ length: count }, (_, i) => combineJson(lists.map((list) => list[i]!), join));
  }
  if (values.every((v) => v && typeof v === "object" && !Array.isArray(v))) {
    const objects = values as Record<string, Json>[];
    const keys = Object.keys(objects[0]!).filter((key) => objects.every((o) => Object.hasOwn(o, key)));
    return Object.fromEntries(keys.map((key) => [key, combineJson(objects.map((o) => o[key]!), join)]));
  }
  return values.every((v) => v === first) ? first! : "differs";
}

function numeric(value: Json): boolean {
  return typeof value === "number" || value === "NaN" || value === "Infinity" || value === "-Infinity";
}

export const difference = ([a, b]: number[]): number => a! - b!;

export const mean = (numbers: number[]): number => numbers.reduce((sum, n) => sum + n, 0) / numbers.length;

export function deviation(numbers: number[]): number {
  const middle = mean(numbers);
  return Math.sqrt(numbers.reduce((sum, n) => sum + (n - middle) ** 2, 0) / (numbers.length - 1));
}
