/** Asks the server; addresses are relative, so that a proxy may put a path before. */

import { decodePanel, decodeArray, type Panel } from "./arrays.ts";
import type {
  Described,
  Runs,
  StepColumns,
  WireCurve,
  WireFilm,
  WirePanels,
  WireResult,
} from "./types.ts";

type Pairs = [string, string | number][];

export function address(path: string, pairs: Pairs = []): string {
  const query = new URLSearchParams(pairs.map(([k, v]) => [k, String(v)]));
  const text = query.toString();
  return `api/${path}${text ? `?${text}` : ""}`;
}

/** Raised for an answer that is no success; its message is for the reader. */
export class Refused extends Error {}

async function ask<T>(path: string, pairs: Pairs, signal?: AbortSignal): Promise<T> {
  let answer: Response;
  try {
    answer = await fetch(address(path, pairs), signal ? { signal } : {});
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Refused(
      "The server does not answer. Is `theseus-track dashboard` still running?",
    );
  }
  if (answer.ok) return (await answer.json()) as T;
  const text = await answer.text();
  throw new Refused(answer.status === 401 ? UNKNOWN_BROWSER : reasonOf(text));
}

const UNKNOWN_BROWSER =
  "The server was restarted and does not know this browser any more. " +
  "Open the link that the command printed last.";

function reasonOf(text: string): string {
  try {
    return String((JSON.parse(text) as { error: unknown }).error);
  } catch {
    return text.slice(0, 500);
  }
}

export const getRuns = (signal?: AbortSignal): Promise<Runs> => ask("runs", [], signal);

export const getSteps = async (
  key: string,
  signal?: AbortSignal,
): Promise<Record<string, StepColumns>> =>
  (
    await ask<{ analyses: Record<string, StepColumns> }>(`runs/${key}/steps`, [], signal)
  ).analyses;

export const getCurves = async (
  keys: string[],
  names: string[],
  signal?: AbortSignal,
): Promise<Record<string, Record<string, WireCurve>>> =>
  (
    await ask<{ runs: Record<string, Record<string, WireCurve>> }>(
      "metrics",
      [...keys.map((k) => ["run", k] as [string, string]), ...names.map((n) => ["name", n] as [string, string]), ["points", 1500]],
      signal,
    )
  ).runs;

export interface Panels {
  name: string;
  panels: Panel[];
  mismatches: string[];
}

export async function getPanels(
  name: string,
  keys: string[],
  when: Pairs,
  signal?: AbortSignal,
): Promise<Panels> {
  const runs: Pairs = keys.map((key) => ["run", key]);
  const wire = await ask<WirePanels>("views", [["name", name], ...runs, ...when], signal);
  return { ...wire, panels: wire.panels.map(decodePanel) };
}

export interface Film extends Omit<WireFilm, "frames"> {
  frames: Float32Array | Float64Array;
}

export async function getFilm(
  key: string,
  name: string,
  part: string,
  panel: number,
  signal?: AbortSignal,
): Promise<Film> {
  const wire = await ask<WireFilm>(`runs/${key}/film`, [["name", name], ["part", part], ["panel", panel]], signal);
  return { ...wire, frames: decodeArray(wire.frames).data };
}

export const getResults = async (
  key: string,
  name: string,
  step: number,
  signal?: AbortSignal,
): Promise<Described[]> =>
  (
    await ask<{ results: Described[] }>(
      `runs/${key}/results`,
      [["name", name], ["step", step]],
      signal,
    )
  ).results;

export const getResult = (
  key: string,
  writer: string,
  seq: number,
  signal?: AbortSignal,
): Promise<WireResult> =>
  ask(`runs/${key}/results/${encodeURIComponent(writer)}/${seq}`, [], signal);
