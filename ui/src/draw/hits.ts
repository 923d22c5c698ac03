/** What can be pointed at in a drawing: cells of an array, or single marks. */

export interface CellHit {
  kind: "cells";
  panel: number;
  x: number;
  y: number;
  w: number;
  h: number;
  top: number;
  left: number;
  rows: number;
  cols: number;
  value(row: number, col: number): number;
  label(row: number, col: number): string;
}

export interface MarkHit {
  kind: "mark";
  panel: number;
  index: number;
  x: number;
  y: number;
  w: number;
  h: number;
  text: string;
}

export type Hit = CellHit | MarkHit;

/** What is pointed at; the same in every panel of an analysis. */
export interface Pointed {
  panel: number;
  row: number;
  col: number;
}

/** What lies at a place of the drawing. */
export function pointedAt(hits: readonly Hit[], x: number, y: number): Pointed | null {
  for (const hit of hits) {
    if (hit.kind !== "cells") continue;
    if (x < hit.x || y < hit.y || x >= hit.x + hit.w || y >= hit.y + hit.h) continue;
    const row = hit.top + Math.floor(((y - hit.y) / hit.h) * hit.rows);
    const col = hit.left + Math.floor(((x - hit.x) / hit.w) * hit.cols);
    return { panel: hit.panel, row, col };
  }
  return nearestMark(hits, x, y);
}

const REACH = 40;

function nearestMark(hits: readonly Hit[], x: number, y: number): Pointed | null {
  let best: MarkHit | null = null;
  let least = REACH;
  for (const hit of hits) {
    if (hit.kind !== "mark") continue;
    const dx = Math.max(hit.x - x, 0, x - hit.x - hit.w);
    const dy = Math.max(hit.y - y, 0, y - hit.y - hit.h);
    const distance = Math.hypot(dx, dy);
    if (distance < least) [best, least] = [hit, distance];
  }
  return best && { panel: best.panel, row: 0, col: best.index };
}

/** The text of what is pointed at in this drawing. */
export function toldAt(hits: readonly Hit[], at: Pointed): string | null {
  for (const hit of hits) {
    if (hit.panel !== at.panel) continue;
    if (hit.kind === "mark") {
      if (hit.index === at.col) return hit.text;
      continue;
    }
    const row = at.row - hit.top;
    const col = at.col - hit.left;
    if (row >= 0 && col >= 0 && row < hit.rows && col < hit.cols) return hit.label(at.row, at.col);
  }
  return null;
}

/** The rectangle of what is pointed at, to be outlined. */
export function outlineOf(hits: readonly Hit[], at: Pointed): [number, number, number, number] | null {
  for (const hit of hits) {
    if (hit.panel !== at.panel) continue;
    if (hit.kind === "mark") {
      if (hit.index === at.col) return [hit.x, hit.y, hit.w, hit.h];
      continue;
    }
    const [w, h] = [hit.w / hit.cols, hit.h / hit.rows];
    const row = at.row - hit.top;
    const col = at.col - hit.left;
    if (row >= 0 && col >= 0 && row < hit.rows && col < hit.cols) return [hit.x + col * w, hit.y + row * h, w, h];
  }
  return null;
}
