/** The whole view as the query of the address, both ways. */

import type { Chosen } from "./selection.ts";

export type Page = "runs" | "compare" | "film" | "result";
export type Align = "step" | "tokens" | "metric";
export type Statistic = "" | "mean" | "std";

/** A run at a step; null is the step of the slider. */
export interface Point {
  run: string;
  step: number | null;
}

export interface Place {
  page: Page;
  runs: Chosen[];
  /** Analyses that are shown; none chosen is the first few. */
  names: string[];
  /** Training step, or tokens where `align` says so; null is the newest. */
  step: number | null;
  exact: boolean;
  align: Align;
  /** A metric and the number that it first falls below. */
  until: { metric: string; below: number } | null;
  metrics: string[];
  x: "step" | "tokens" | "time";
  logX: boolean;
  logY: boolean;
  smooth: number;
  shared: boolean;
  robust: boolean;
  difference: [Point, Point] | null;
  statistic: Statistic;
  over: string;
  /** The analysis whose mismatch was seen, and is combined all the same. */
  anyway: string[];
  /** Rows and columns of heatmaps that are shown: [top, bottom, left, right]. */
  zoom: [number, number, number, number] | null;
  wipe: boolean;
  filter: string;
  sort: string;
  group: string;
  columns: string[];
  onlyDifferent: boolean;
  /** The run and analysis of the pages of one. */
  run: string;
  name: string;
  part: string;
  panel: number | null;
  writer: string;
  seq: number | null;
  row: number | null;
  theme: "" | "light" | "dark";
}

export const START: Place = {
  page: "runs", runs: [], names: [], step: null, exact: false, align: "step", until: null,
  metrics: [], x: "step", logX: false, logY: false, smooth: 0, shared: true, robust: false,
  difference: null, statistic: "", over: "", anyway: [], zoom: null, wipe: false,
  filter: "", sort: "-created", group: "", columns: [], onlyDifferent: true,
  run: "", name: "", part: "", panel: null, writer: "", seq: null, row: null, theme: "",
};

type Values = string[];

interface Field<T> {
  write(value: T): Values;
  read(values: Values): T | undefined;
}

const text: Field<string> = { write: (v) => [v], read: ([v]) => v };
const list: Field<string[]> = { write: (v) => v, read: (v) => v };
const flag: Field<boolean> = {
  write: (v) => [v ? "1" : "0"],
  read: ([v]) => (v === "1" ? true : v === "0" ? false : undefined),
};
const number: Field<number> = { write: (v) => [String(v)], read: ([v]) => finite(v) };
const step: Field<number | null> = {
  write: (v) => (v === null ? [] : [String(v)]),
  read: ([v]) => finite(v),
};

function finite(value: string | undefined): number | undefined {
  if (value === undefined || value.trim() === "") return undefined;
  const found = Number(value);
  return Number.isFinite(found) ? found : undefined;
}

function oneOf<T extends string>(...allowed: T[]): Field<T> {
  return { write: (v) => [v], read: ([v]) => allowed.find((a) => a === v) };
}

const KEY = /^[0-9a-f]{1,64}$/;

const runs: Field<Chosen[]> = {
  write: (v) => v.map(({ key, slot }) => `${key}.${slot}`),
  read: (values) => {
    const found: Chosen[] = [];
    for (const value of values) {
      const [key = "", slot = ""] = value.split(".");
      const taken = found.some((run) => run.key === key || run.slot === Number(slot));
      if (KEY.test(key) && /^\d{1,4}$/.test(slot) && !taken) found.push({ key, slot: Number(slot) });
    }
    return found;
  },
};

const difference: Field<[Point, Point] | null> = {
  write: (v) => (v ?? []).map((p) => (p.step === null ? p.run : `${p.run}@${p.step}`)),
  read: (values) => {
    const points = values.map((value) => {
      const [run = "", at] = value.split("@");
      return { run, step: finite(at) ?? null };
    });
    const [a, b] = points;
    return a && b && KEY.test(a.run) && KEY.test(b.run) ? [a, b] : undefined;
  },
};

const until: Field<Place["until"]> = {
  write: (v) => (v ? [v.metric, String(v.below)] : []),
  read: ([metric, below]) => {
    const limit = finite(below);
    return metric && limit !== undefined ? { metric, below: limit } : undefined;
  },
};

const zoom: Field<Place["zoom"]> = {
  write: (v) => (v ? [v.join(",")] : []),
  read: ([v]) => {
    const found = (v ?? "").split(",").map(Number);
    const [top, bottom, left, right] = found;
    const good = found.length === 4 && found.every((n) => Number.isInteger(n) && n >= 0);
    return good && bottom! > top! && right! > left! ? [top!, bottom!, left!, right!] : undefined;
  },
};

const FIELDS: { [K in keyof Place]: [string, Field<Place[K]>] } = {
  page: ["page", oneOf("runs", "compare", "film", "result")],
  runs: ["r", runs],
  names: ["a", list],
  step: ["step", step],
  exact: ["exact", flag],
  align: ["align", oneOf("step", "tokens", "metric")],
  until: ["until", until],
  metrics: ["m", list],
  x: ["x", oneOf("step", "tokens", "time")],
  logX: ["logx", flag],
  logY: ["logy", flag],
  smooth: ["smooth", number],
  shared: ["shared", flag],
  robust: ["robust", flag],
  difference: ["diff", difference],
  statistic: ["stat", oneOf("", "mean", "std")],
  over: ["over", text],
  anyway: ["anyway", list],
  zoom: ["zoom", zoom],
  wipe: ["wipe", flag],
  filter: ["q", text],
  sort: ["sort", text],
  group: ["group", text],
  columns: ["c", list],
  onlyDifferent: ["different", flag],
  run: ["run", text],
  name: ["name", text],
  part: ["part", text],
  panel: ["panel", step],
  writer: ["w", text],
  seq: ["seq", step],
  row: ["row", step],
  theme: ["theme", oneOf("", "light", "dark")],
};

/** The place that a query names; what it does not say, or says wrongly, is as at the start. */
export function parse(query: string): Place {
  const given = new URLSearchParams(query);
  const place = { ...START };
  for (const field of Object.keys(FIELDS) as (keyof Place)[]) readInto(place, field, given);
  return place;
}

function readInto<K extends keyof Place>(place: Place, field: K, given: URLSearchParams): void {
  const [name, { read }] = FIELDS[field];
  if (!given.has(name)) return;
  const found = read(given.getAll(name));
  if (found !== undefined) place[field] = found;
}

/** The query of a place, without what is as at the start. */
export function format(place: Place): string {
  const query = new URLSearchParams();
  for (const field of Object.keys(FIELDS) as (keyof Place)[]) writeInto(query, field, place);
  const found = query.toString();
  return found ? `?${found}` : "";
}

function writeInto<K extends keyof Place>(query: URLSearchParams, field: K, place: Place): void {
  const [name, { write }] = FIELDS[field];
  const values = write(place[field]);
  if (values.join("\n") === write(START[field]).join("\n")) return;
  for (const value of values) query.append(name, value);
}
