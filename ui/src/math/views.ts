/** Differences and statistics of Views: the same kind of View with other numbers. */

import type { Block, View } from "../api/arrays.ts";
import { deviationOf, meanOf, sameShape, subtract } from "./blocks.ts";

/** Why Views cannot be put together, for the reader. */
export interface Obstacle {
  obstacle: string;
}

export type Combined = View | Obstacle;

export function isView(value: Combined): value is View {
  return "kind" in value;
}

// Which arrays hold the numbers of a kind; all others must agree.
const MEASURED: Record<string, string[]> = {
  heatmap: ["values"],
  image_grid: ["values"],
  token_strip: ["values"],
  line: ["y"],
  bar: ["y"],
  histogram: ["heights"],
};

/** The first View minus the second, cell by cell. */
export function differenceOf(a: View, b: View): Combined {
  return combine([a, b], ([x, y]) => subtract(x!, y!), true);
}

/** The mean of each cell over the Views. */
export function meanView(views: readonly View[]): Combined {
  return combine(views, meanOf, false);
}

/** The standard deviation of each cell over the Views. */
export function deviationView(views: readonly View[]): Combined {
  if (views.length < 2) return { obstacle: "A deviation needs two runs or more." };
  return combine(views, deviationOf, false);
}

function combine(
  views: readonly View[],
  join: (blocks: Block[]) => Block,
  difference: boolean,
): Combined {
  const first = views[0];
  if (!first) return { obstacle: "There is nothing to put together." };
  const why = obstacleOf(views);
  if (why) return { obstacle: why };
  const roles = measuredRoles(first);
  const arrays: Record<string, Block> = {};
  for (const [role, block] of Object.entries(first.arrays)) {
    // The bounds of one View say nothing of a difference or a mean.
    if (isBound(role)) continue;
    arrays[role] = roles.has(role) ? join(views.map((v) => v.arrays[role]!)) : block;
  }
  const scale = plainScale(first, difference);
  const labels = { ...first.labels, annot: null };
  return { ...first, arrays, labels, scale, caption: "" };
}

const isBound = (role: string): boolean => /(^|\/)(low|high)$/.test(role);

function plainScale(view: View, difference: boolean): View["scale"] {
  const { vmin: _low, vmax: _high, ...rest } = view.scale;
  if (!difference) return { ...rest, center: null, norm: "linear", cmap: null };
  return { ...rest, center: 0, norm: "linear", cmap: "RdBu_r" };
}

function measuredRoles(view: View): Set<string> {
  if (view.kind !== "grid") return new Set(MEASURED[view.kind] ?? []);
  const kinds = panelKinds(view);
  const roles = kinds.flatMap((kind, i) => (MEASURED[kind] ?? []).map((r) => `${i}/${r}`));
  return new Set(roles);
}

function panelKinds(view: View): string[] {
  const panels = view.labels["panels"];
  if (!Array.isArray(panels)) return [];
  return panels.map((panel) => String((panel as { kind?: unknown } | null)?.kind));
}

function obstacleOf(views: readonly View[]): string | null {
  const first = views[0]!;
  const kinds = first.kind === "grid" ? panelKinds(first) : [first.kind];
  const unknown = kinds.find((kind) => !(kind in MEASURED));
  if (unknown !== undefined) {
    return `Points of a ${unknown} belong to no cells, so they cannot be subtracted or averaged.`;
  }
  const roles = measuredRoles(first);
  for (const other of views) {
    if (other.kind !== first.kind) {
      return `One is drawn as ${first.kind}, the other as ${other.kind}.`;
    }
    for (const [role, block] of Object.entries(first.arrays)) {
      if (isBound(role)) continue;
      const theirs = other.arrays[role];
      if (!theirs) return `One has no array “${role}”.`;
      if (!sameShape(block, theirs)) {
        return `Their shapes differ: ${block.shape.join("×")} and ${theirs.shape.join("×")}.`;
      }
      if (!roles.has(role) && !sameNumbers(block, theirs)) {
        return `Their “${role}” differ, so no cell of one belongs to one of the other.`;
      }
    }
  }
  return null;
}

function sameNumbers(a: Block, b: Block): boolean {
  return a.data.every((value, i) => Object.is(value, b.data[i]) || value === b.data[i]);
}
