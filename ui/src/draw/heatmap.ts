/** Draws a matrix as coloured cells, with the ticks and labels of its figure. */

import type { Block, View } from "../api/arrays.ts";
import { niceTicks, short } from "../math/numbers.ts";
import { colorOf, inkOn, pixelsOf, type Scale, type Window } from "./colormap.ts";
import type { CellHit } from "./hits.ts";
import { SMALL, TEXT, type Box, type Drawn, type Job } from "./job.ts";
import type { Pen } from "./pen.ts";
import { fitted, textOf } from "./texts.ts";

const TICK = 4;
const BAR = 10;
const BAR_ROOM = 64;
const MOST_LABEL = 96;
const LEAST_TICK = 14;

export function drawHeatmap(
  pen: Pen, view: View, box: Box, job: Job, bar = true,
): Drawn {
  const values = view.arrays["values"];
  const shape = values?.shape ?? [];
  const [rows = 0, cols = 0] = shape.slice(-2);
  if (!values || !rows || !cols) return nothing(pen, box, job);
  const shown = windowIn(job.zoom, rows, cols);
  const yTexts = tickTexts(view, "y", shown.top, shown.bottom);
  const xTexts = tickTexts(view, "x", shown.left, shown.right);
  const [xLabel, yLabel, title] = [textOf(view, "x"), textOf(view, "y"), textOf(view, "title")];

  const widest = Math.min(MOST_LABEL, Math.max(...yTexts.map((t) => pen.width(t.text, SMALL)), 6));
  const left = box.x + (yLabel ? 18 : 0) + widest + TICK + 4;
  const right = box.x + box.w - (bar ? BAR_ROOM : 4);
  const w = Math.max(24, right - left);
  const top = box.y + (title ? 22 : 6);
  const h = heightOf(view, shown, w);
  const { look } = job;
  if (title) pen.text(fitted(pen, title, TEXT, box.w), box.x, box.y + 8, { size: TEXT, color: look.ink, bold: true });

  pen.image(() => pixelsOf(values, 0, cols, shown, job.scale, look, view.arrays["mask"]), left, top, w, h);
  pen.frame(left, top, w, h, look.axis, 0.5);
  writeAnnotations(pen, view, { left, top, w, h }, shown, values, cols, job.scale);

  const cw = w / (shown.right - shown.left);
  const ch = h / (shown.bottom - shown.top);
  for (const { at, text } of thinned(yTexts, ch, LEAST_TICK)) {
    const y = top + (at - shown.top + 0.5) * ch;
    pen.line([[left - TICK, y], [left, y]], look.axis, 0.75);
    pen.text(fitted(pen, text, SMALL, widest), left - TICK - 3, y, { size: SMALL, color: look.quiet, align: "right" });
  }
  const bottom = drawXTicks(pen, xTexts, left, top + h, cw, shown, look.axis, look.quiet);
  let height = bottom - box.y;
  if (xLabel) {
    pen.text(fitted(pen, xLabel, SMALL, w), left + w / 2, bottom + 8, { size: SMALL, color: look.ink, align: "center" });
    height += 18;
  }
  if (yLabel) pen.text(fitted(pen, yLabel, SMALL, h + 20), box.x + 6, top + h / 2, { size: SMALL, color: look.ink, align: "center", turned: true });
  if (bar) drawBar(pen, job, right + 10, top, Math.min(h, 220));
  const hit = cellsOf(view, values, rows, cols, shown);
  return { height: height + 4, hits: [{ ...hit, x: left, y: top, w, h }] };
}

function nothing(pen: Pen, box: Box, job: Job): Drawn {
  pen.text("This array is empty.", box.x + 4, box.y + 16, { size: TEXT, color: job.look.quiet });
  return { height: 32, hits: [] };
}

/** The part of a zoom that lies in a matrix; all of it when none does. */
export function windowIn(zoom: Window | null, rows: number, cols: number): Window {
  const whole = { top: 0, bottom: rows, left: 0, right: cols };
  if (!zoom || zoom.top >= rows || zoom.left >= cols) return whole;
  return { ...zoom, bottom: Math.min(zoom.bottom, rows), right: Math.min(zoom.right, cols) };
}

function heightOf(view: View, shown: Window, w: number): number {
  const ratio = (shown.bottom - shown.top) / (shown.right - shown.left);
  if (view.scale["square"] === true) return Math.min(Math.max(w * ratio, 16), 1.4 * w);
  return Math.min(Math.max(w * ratio, Math.min(120, 18 * (shown.bottom - shown.top)) + 10), 0.8 * w);
}

interface Tick {
  at: number;
  text: string;
}

function tickTexts(view: View, axis: "x" | "y", from: number, to: number): Tick[] {
  const texts = view.ticks[axis] ?? [];
  if (texts.length) {
    return texts.slice(from, to).map((text, i) => ({ at: from + i, text })).filter((t) => t.text);
  }
  // A figure of fewer cells than the array: a cell stands for a block of them.
  const blocks = view.scale["blocks"];
  const block = Array.isArray(blocks) ? Number(blocks[axis === "y" ? 0 : 1]) || 1 : 1;
  return niceTicks(from, Math.max(from, to - 1), 6)
    .filter((at) => Number.isInteger(at))
    .map((at) => ({ at, text: String(at * block) }));
}

/** Every n-th tick, so that each has so much room. */
function thinned(ticks: Tick[], cell: number, room: number): Tick[] {
  const spaced = ticks.length > 1 ? ((ticks.at(-1)!.at - ticks[0]!.at) / (ticks.length - 1)) * cell : Infinity;
  const each = Math.max(1, Math.ceil(room / spaced));
  return ticks.filter((_, i) => i % each === 0);
}

function drawXTicks(
  pen: Pen, texts: Tick[], left: number, y: number, cw: number, shown: Window, axis: string, quiet: string,
): number {
  const widest = Math.max(...texts.map(({ text }) => pen.width(text, SMALL)), 0);
  const spaced = texts.length > 1 ? (texts[1]!.at - texts[0]!.at) * cw : Infinity;
  const turned = widest + 6 > spaced && widest > 22;
  thinned(texts, cw, turned ? SMALL + 4 : widest + 6).forEach(({ at, text }) => {
    const x = left + (at - shown.left + 0.5) * cw;
    pen.line([[x, y], [x, y + TICK]], axis, 0.75);
    if (turned) pen.text(fitted(pen, text, SMALL, 70), x, y + TICK + 3, { size: SMALL, color: quiet, align: "right", turned: true });
    else pen.text(text, x, y + TICK + 9, { size: SMALL, color: quiet, align: "center" });
  });
  return y + TICK + (turned ? Math.min(widest, 70) + 8 : 16);
}

function drawBar(pen: Pen, job: Job, x: number, y: number, h: number): void {
  const { scale, look } = job;
  const data = new Uint8ClampedArray(4 * 128);
  for (let i = 0; i < 128; i++) {
    const value = valueAt(scale, 1 - i / 127);
    const [r, g, b] = colorOf(value, scale).match(/\d+/g)!.map(Number) as [number, number, number];
    data.set([r, g, b, 255], 4 * i);
  }
  pen.image(() => ({ data, width: 1, height: 128 }), x, y, BAR, h);
  const places = h > 60 ? [1, 0.5, 0] : [1, 0];
  for (const share of places) {
    const at = Math.min(Math.max(y + (1 - share) * h, y + 5), y + h - 5);
    const text = [3, 2].map((digits) => short(valueAt(scale, share), digits)).find((t) => t.length < 8);
    pen.text(text ?? short(valueAt(scale, share), 1), x + BAR + 4, at, { size: 10, color: look.quiet });
  }
}

function valueAt(scale: Scale, share: number): number {
  if (!scale.log) return scale.low + share * (scale.high - scale.low);
  return Math.exp(Math.log(scale.low) + share * (Math.log(scale.high) - Math.log(scale.low)));
}

function writeAnnotations(
  pen: Pen, view: View, area: { left: number; top: number; w: number; h: number },
  shown: Window, values: Block, cols: number, scale: Scale,
): void {
  const texts = view.labels["annot"];
  const cw = area.w / (shown.right - shown.left);
  const ch = area.h / (shown.bottom - shown.top);
  if (!Array.isArray(texts) || cw < 18 || ch < 12) return;
  for (let row = shown.top; row < shown.bottom; row++) {
    const line = texts[row];
    if (!Array.isArray(line)) continue;
    for (let col = shown.left; col < shown.right; col++) {
      const text = fitted(pen, String(line[col] ?? ""), 10, cw - 2);
      const value = values.data[row * cols + col]!;
      pen.text(text, area.left + (col - shown.left + 0.5) * cw, area.top + (row - shown.top + 0.5) * ch, { size: 10, color: inkOn(value, scale), align: "center" });
    }
  }
}

function cellsOf(
  view: View, values: Block, rows: number, cols: number, shown: Window,
): Omit<CellHit, "x" | "y" | "w" | "h"> {
  const named = (axis: "x" | "y", i: number): string => view.ticks[axis]?.[i] || String(i);
  const { low, high } = view.arrays;
  const at = (row: number, col: number): number => row * cols + col;
  return {
    kind: "cells", panel: 0,
    top: shown.top, left: shown.left,
    rows: Math.min(shown.bottom, rows) - shown.top, cols: shown.right - shown.left,
    value: (row, col) => values.data[at(row, col)]!,
    label: (row, col) => {
      const bounds = low && high ? ` (${short(low.data[at(row, col)])} … ${short(high.data[at(row, col)])})` : "";
      return `${short(values.data[at(row, col)], 5)}${bounds} at ${named("y", row)}, ${named("x", col)}`;
    },
  };
}
