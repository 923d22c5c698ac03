/** Steps of several runs: their union, and the record that stands for a step. */

/** The steps that any of the lists has, ascending. */
export function unionOf(lists: Iterable<readonly number[]>): number[] {
  const all = new Set<number>();
  for (const list of lists) for (const step of list) all.add(step);
  return [...all].sort((a, b) => a - b);
}

/** The index of the last of the ascending steps that is <= step, or -1. */
export function indexAtOrBefore(steps: readonly number[], step: number): number {
  let low = 0;
  let high = steps.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle]! <= step) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** The nearest earlier step; with `exact`, only the step itself. */
export function nearestEarlier(
  steps: readonly number[],
  step: number,
  exact: boolean,
): number | null {
  const found = steps[indexAtOrBefore(steps, step)];
  return found === undefined || (exact && found !== step) ? null : found;
}

/** The step whose distance is smallest; the earlier of two. */
export function closest(steps: readonly number[], step: number): number | null {
  const index = indexAtOrBefore(steps, step);
  const before = steps[index];
  const after = steps[index + 1];
  if (before === undefined) return after ?? null;
  if (after === undefined) return before;
  return after - step < step - before ? after : before;
}
