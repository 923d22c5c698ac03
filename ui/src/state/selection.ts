/** The chosen runs, each with a colour that stays its own. */

/** A run by its key, with the number of its colour. */
export interface Chosen {
  key: string;
  slot: number;
}

/** Add a run: it gets the lowest colour that is free; the others keep theirs. */
export function withRun(chosen: readonly Chosen[], key: string): Chosen[] {
  if (chosen.some((run) => run.key === key)) return [...chosen];
  const taken = new Set(chosen.map((run) => run.slot));
  let slot = 0;
  while (taken.has(slot)) slot++;
  return [...chosen, { key, slot }];
}

export function withoutRun(chosen: readonly Chosen[], key: string): Chosen[] {
  return chosen.filter((run) => run.key !== key);
}

export function toggled(chosen: readonly Chosen[], key: string): Chosen[] {
  return chosen.some((run) => run.key === key)
    ? withoutRun(chosen, key)
    : withRun(chosen, key);
}
