/** Filter, sort and group the table of runs. */

import type { Json, Run } from "../api/types.ts";

/** A column by its id: a field, `metric:NAME` or `config:a.b`. */
export function cell(run: Run, column: string): number | string | null {
  if (column.startsWith("metric:")) {
    const value = run.last[column.slice(7)];
    return value === undefined ? null : Number(value);
  }
  if (column.startsWith("config:")) return plain(configAt(run.config, column.slice(7)));
  switch (column) {
    case "analyses": return run.analyses.length;
    case "tags": return run.tags.join(", ");
    case "last_step": return run.last_step;
    case "created": return run.created;
    case "project": case "name": case "state": case "id": return run[column];
    case "group": return run.group ?? "";
    default: return null;
  }
}

function plain(value: Json | undefined): number | string | null {
  if (value === undefined) return null;
  return typeof value === "number" || typeof value === "string" ? value : JSON.stringify(value);
}

export function configAt(config: Record<string, Json>, path: string): Json | undefined {
  return flat(config)[path];
}

/** A nested config as `a.b` -> value. */
export function flat(config: Record<string, Json>, prefix = ""): Record<string, Json> {
  const found: Record<string, Json> = {};
  for (const [key, value] of Object.entries(config)) {
    if (value && typeof value === "object" && !Array.isArray(value) && Object.keys(value).length) {
      Object.assign(found, flat(value, `${prefix}${key}.`));
    } else {
      found[prefix + key] = value;
    }
  }
  return found;
}

const TERM = /^([^<>=:]+?)(<=|>=|<|>|=|:)(.+)$/;
const FIELDS = new Set(["project", "name", "state", "id", "group", "tags", "last_step", "analyses"]);

/** Whether a run has every word of the filter: text, `state:running`, `lr<0.01`. */
export function matches(run: Run, filter: string): boolean {
  return filter.toLowerCase().split(/\s+/).filter(Boolean).every((word) => {
    const negated = word.startsWith("-") && word.length > 1;
    const found = matchesWord(run, negated ? word.slice(1) : word);
    return found !== negated;
  });
}

function matchesWord(run: Run, word: string): boolean {
  const term = TERM.exec(word);
  if (!term) {
    const texts = [run.project, run.name, run.id, run.group ?? "", run.state, ...run.tags, ...run.analyses];
    return texts.some((text) => text.toLowerCase().includes(word));
  }
  const [, name, operator, wanted] = term as unknown as [string, string, string, string];
  const value = lookUp(run, name);
  if (value === null) return false;
  if (operator === ":") return String(value).toLowerCase().includes(wanted);
  const number = Number(value);
  const limit = Number(wanted);
  switch (operator) {
    case "=": return String(value).toLowerCase() === wanted || number === limit;
    case "<": return number < limit;
    case ">": return number > limit;
    case "<=": return number <= limit;
    default: return number >= limit;
  }
}

function lookUp(run: Run, name: string): number | string | null {
  if (name === "tag") return run.tags.join(" ");
  if (name === "step") return run.last_step;
  if (FIELDS.has(name)) return cell(run, name);
  const fold = (key: string): boolean => key.toLowerCase() === name;
  const metric = Object.keys(run.last).find(fold);
  if (metric !== undefined) return Number(run.last[metric]);
  const known = flat(run.config);
  const key = Object.keys(known).find((k) => fold(k) || fold(k.split(".").pop()!));
  return key === undefined ? null : plain(known[key]);
}

/** Sorted by a column; `-column` is descending. What has no value comes last. */
export function sorted(runs: readonly Run[], by: string): Run[] {
  const descending = by.startsWith("-");
  const column = descending ? by.slice(1) : by;
  const keyed = runs.map((run, i) => ({ run, i, value: cell(run, column) }));
  const empty = (v: number | string | null): boolean => v === null || Number.isNaN(v);
  keyed.sort((a, b) => {
    if (empty(a.value) || empty(b.value)) return Number(empty(a.value)) - Number(empty(b.value)) || a.i - b.i;
    const order =
      typeof a.value === "number" && typeof b.value === "number"
        ? a.value - b.value
        : String(a.value).localeCompare(String(b.value), "en", { numeric: true });
    return (descending ? -order : order) || a.i - b.i;
  });
  return keyed.map(({ run }) => run);
}

/** The runs by the value of a column, in the order in which values appear. */
export function grouped(runs: readonly Run[], column: string): [string, Run[]][] {
  if (!column) return [["", [...runs]]];
  const groups = new Map<string, Run[]>();
  for (const run of runs) {
    const value = cell(run, column);
    const name = value === null || value === "" ? "none" : String(value);
    const members = groups.get(name);
    if (members) members.push(run);
    else groups.set(name, [run]);
  }
  return [...groups];
}

export interface DiffRow {
  key: string;
  values: (string | null)[];
  differs: boolean;
}

/** The configs side by side: each key, its value in each run, whether they differ. */
export function configDiff(runs: readonly Run[]): DiffRow[] {
  const configs = runs.map((run) => flat(run.config));
  const keys = [...new Set(configs.flatMap((config) => Object.keys(config)))].sort();
  return keys.map((key) => {
    const values = configs.map((c) => (key in c ? JSON.stringify(c[key]) : null));
    return { key, values, differs: values.some((value) => value !== values[0]) };
  });
}
