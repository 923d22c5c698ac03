/** Names that fit and can be told apart. */

/** Cut the middle out of a text that is longer than so many characters. */
export function middleCut(text: string, width: number): string {
  if (text.length <= width) return text;
  const tail = Math.ceil((width - 1) * 0.6);
  return `${text.slice(0, width - 1 - tail)}…${text.slice(-tail)}`;
}

/** A short name for each run, distinct: equal ones get the end of their id. */
export function shortNames(
  runs: readonly { name: string; id: string }[],
  width = 28,
): string[] {
  const cut = runs.map((run) => middleCut(run.name || run.id, width));
  const seen = new Map<string, number>();
  for (const name of cut) seen.set(name, (seen.get(name) ?? 0) + 1);
  return cut.map((name, i) =>
    seen.get(name)! > 1 ? `${name} · ${middleCut(runs[i]!.id, 9)}` : name,
  );
}
