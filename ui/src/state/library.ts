/** What is known of the runs: asked once, and again when the server tells of changes. */

import { computed, effect, signal } from "@preact/signals";
import { getRuns, getSteps } from "../api/client.ts";
import { follow } from "../api/events.ts";
import type { Run, StepColumns } from "../api/types.ts";
import { shortNames } from "../math/names.ts";
import { place } from "./place.ts";
import type { Chosen } from "./selection.ts";

export const runs = signal<Run[]>([]);
export const roots = signal<string[]>([]);
export const indexing = signal({ done: 0, total: 0 });
export const loaded = signal(false);
export const failure = signal<string | null>(null);
export const live = signal(false);
/** How often a run changed since the page was opened, by key. */
export const revisions = signal<Record<string, number>>({});
/** The steps of the chosen runs' analyses, by key. */
export const steps = signal<Record<string, Record<string, StepColumns>>>({});

export const byKey = computed(() => new Map(runs.value.map((run) => [run.key, run])));

/** The chosen runs that exist, with the colour that is theirs. */
export const chosen = computed<(Chosen & { run: Run })[]>(() =>
  place.value.runs.flatMap((one) => {
    const run = byKey.value.get(one.key);
    return run ? [{ ...one, run }] : [];
  }),
);

/** Short names of the chosen runs, distinct, by key. */
export const titles = computed(() => {
  const names = shortNames(chosen.value.map((one) => one.run));
  return new Map(chosen.value.map((one, i) => [one.key, names[i]!]));
});

let asking = false;
let again = false;

async function refresh(): Promise<void> {
  // One question at a time; changes meanwhile make one more, not one each.
  again = true;
  if (asking) return;
  asking = true;
  while (again) {
    again = false;
    try {
      const found = await getRuns();
      runs.value = found.runs;
      roots.value = found.roots;
      indexing.value = found.indexing;
      failure.value = null;
    } catch (error) {
      failure.value = String((error as Error).message);
    }
    loaded.value = true;
  }
  asking = false;
}

const known = new Map<string, number>();

async function loadSteps(key: string, revision: number): Promise<void> {
  if (known.get(key) === revision) return;
  known.set(key, revision);
  try {
    const found = await getSteps(key);
    steps.value = { ...steps.peek(), [key]: found };
  } catch {
    // It went away, or the server did: what is shown says so.
    known.delete(key);
  }
}

export function start(): void {
  void refresh();
  follow(
    (change) => {
      const next = { ...revisions.peek() };
      for (const key of change.runs) next[key] = (next[key] ?? 0) + 1;
      revisions.value = next;
      indexing.value = change.indexing;
      void refresh();
    },
    (open) => {
      live.value = open;
    },
  );
  effect(() => {
    const keys = new Set(place.value.runs.map((one) => one.key));
    if (place.value.run) keys.add(place.value.run);
    for (const key of keys) {
      if (byKey.value.has(key)) void loadSteps(key, revisions.value[key] ?? 0);
    }
  });
}
