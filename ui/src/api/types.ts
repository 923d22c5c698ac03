/** What the server answers: docs/dashboard.md describes each of these. */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export interface WireArray {
  dtype: "float32" | "float64";
  shape: number[];
  data: string;
}

export interface WireView {
  kind: string;
  arrays: Record<string, WireArray>;
  labels: Record<string, Json>;
  ticks: Record<string, string[]>;
  scale: Record<string, Json>;
  caption: string;
}

export interface Run {
  key: string;
  root: number;
  project: string;
  name: string;
  id: string;
  group: string | null;
  tags: string[];
  state: "running" | "finished" | "stopped";
  created: number;
  config: Record<string, Json>;
  last: Record<string, number | string>;
  last_step: number | null;
  analyses: string[];
  counts: Record<string, number>;
  metrics: string[];
  step_count: number;
  damaged: boolean | number;
  indexed: boolean;
}

export interface Runs {
  runs: Run[];
  indexing: { done: number; total: number };
  roots: string[];
}

export interface StepColumns {
  steps: number[];
  wall_time: number[];
  tokens: (number | null)[];
  errors: number[];
}

export interface WireCurve {
  step: number[];
  wall_time: number[];
  tokens: (number | null)[];
  value: (number | string)[];
  total: number;
}

export interface Described {
  writer: string;
  seq: number;
  analysis: string | null;
  name: string;
  paths: string[];
  step: number;
  wall_time: number;
  source: string;
  shapes: Record<string, number[]>;
  parts: string[];
  error: string | null;
  superseded: boolean;
  probe: string | null;
  measure: string | null;
}

export interface Blob_ {
  part: string;
  suffix: string;
  digest: string;
}

export interface WirePanel {
  run: string;
  step: number | null;
  exact: boolean;
  missing: string | null;
  result: Described | null;
  views: Record<string, WireView>;
  fallback: Record<string, WireView>;
  tables: Record<string, Json>;
  blobs: Blob_[];
  error: string | null;
}

export interface WirePanels {
  name: string;
  panels: WirePanel[];
  mismatches: string[];
}

export interface WireFilm {
  name: string;
  part: string;
  panel: number;
  panels: string[];
  steps: number[];
  shape: number[];
  full: number[];
  frames: WireArray;
  low: number | null;
  high: number | null;
  labels: Record<string, Json>;
  ticks: Record<string, string[]>;
  scale: Record<string, Json>;
  skipped: { step: number; why: string }[];
}

export interface WireResult extends Described {
  views: Record<string, WireView>;
  fallback: Record<string, WireView>;
  tables: Record<string, Json>;
  blobs: Blob_[];
  phase: string | null;
  traceback: string | null;
  provenance: Record<string, Json>;
  siblings: Described[];
}
