/** Draws lines, bars, points and histograms on plain axes. */

import type { View } from "../api/arrays.ts";
import { niceTicks, short } from "../math/numbers.ts";
import type { MarkHit } from "./hits.ts";
import { SMALL, TEXT, type Box, type Drawn, type Job } from "./job.ts";
import type { Pen } from "./pen.ts";
import { fitted, textOf, textsOf } from "./texts.ts";

type Range = [number, number];

const MOST_NAME = 80;

interface Axes {
  x(value: number): number;
  y(value: number): number;
  left: number;
  top: number;
  w: number;
  h: number;
  /** Where the label of the y axis stands. */
  side: number;
  /** How high the tick labels below are. */
  below: number;
}

interface Data {
  x: ArrayLike<number>;
  y: ArrayLike<number>;
  low?: ArrayLike<number> | undefined;
  high?: ArrayLike<number> | undefined;
  group: (i: number) => number;
  xRange: Range;
  yRange: Range;
}

export function drawSeries(pen: Pen, view: View, box: Box, job: Job, panel = 0): Drawn {
  const data = dataOf(view, job);
  const { look } = job;
  if (!data) {
    pen.text("There is nothing to draw.", box.x + 4, box.y + 16, { size: TEXT, color: look.quiet });
    return { height: 32, hits: [] };
  }
  const sideways = view.kind === "bar" && view.scale["orient"] === "y";
  const title = textOf(view, "title");
  if (title) pen.text(fitted(pen, title, TEXT, box.w), box.x, box.y + 8, { size: TEXT, color: look.ink, bold: true });
  const axes = drawAxes(pen, view, data, { ...box, y: box.y + (title ? 22 : 6) }, job, sideways);
  const colors = colorsOf(view, job);
  const hits: MarkHit[] = [];
  const mark = (i: number, x: number, y: number, w = 0, h = 0): void => {
    hits.push({ kind: "mark", panel, index: i, x, y, w, h, text: told(view, data, i) });
  };
  if (view.kind === "line") drawLines(pen, data, axes, colors, mark);
  else if (view.kind === "scatter") drawPoints(pen, data, axes, colors, mark);
  else drawBars(pen, view, data, axes, colors, sideways, mark);
  return { height: axes.top + axes.h - box.y + axes.below + 6 + (textOf(view, "x") ? 18 : 4) + drawLegend(pen, view, colors, box, axes, job), hits };
}

function dataOf(view: View, job: Job): Data | null {
  if (view.kind === "histogram") return histogram(view);
  const { x, y, low, high, group } = view.arrays;
  if (!x || !y || !x.data.length) return null;
  const categorical = view.kind === "bar";
  const ys: ArrayLike<number>[] = [y.data];
  if (low && high) ys.push(low.data, high.data);
  if (categorical) ys.push([0]);
  const places = job.limits ? [job.limits] : ys;
  const count = Math.max(view.ticks[view.scale["orient"] === "y" ? "y" : "x"]?.length ?? 0, 1 + (rangeOf([x.data])[1] || 0));
  return {
    x: x.data, y: y.data, low: low?.data, high: high?.data,
    group: (i) => group?.data[i] ?? 0,
    xRange: categorical ? [-0.6, count - 0.4] : padded(rangeOf([x.data]), 0.02),
    yRange: padded(rangeOf(places), 0.05),
  };
}

function histogram(view: View): Data | null {
  const { edges, heights } = view.arrays;
  if (!edges || !heights) return null;
  const bins = edges.data.length - 1;
  const x = Array.from(heights.data, (_, i) => edges.data[i % bins]!);
  return {
    x, y: heights.data, group: (i) => Math.floor(i / bins),
    xRange: [edges.data[0]!, edges.data[bins]!],
    yRange: padded(rangeOf([heights.data, [0]]), 0.05),
  };
}

function rangeOf(lists: ArrayLike<number>[]): Range {
  let [low, high] = [Infinity, -Infinity];
  for (const list of lists) {
    for (let i = 0; i < list.length; i++) {
      const value = list[i]!;
      if (!Number.isFinite(value)) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  return low <= high ? [low, high] : [0, 1];
}

function padded([low, high]: Range, share: number): Range {
  const room = (high - low) * share || Math.abs(high) * 0.1 || 0.5;
  return [low === 0 ? 0 : low - room, high === 0 ? 0 : high + room];
}

function drawAxes(pen: Pen, view: View, data: Data, box: Box, job: Job, sideways: boolean): Axes {
  const { look } = job;
  const across = sideways ? data.yRange : data.xRange;
  const up = sideways ? data.xRange : data.yRange;
  const yNames = view.ticks["y"] ?? [];
  const yTicks = yNames.length ? yNames.map((_, i) => i) : niceTicks(up[0], up[1], 5);
  const yTexts = yTicks.map((value, i) => yNames[i] ?? short(value));
  const room = Math.min(96, Math.max(...yTexts.map((text) => pen.width(text, SMALL)), 8));
  const left = box.x + room + 10 + (textOf(view, "y") ? 18 : 0);
  const w = Math.max(24, box.x + box.w - left - 10);
  const h = sideways ? Math.min(340, Math.max(110, 20 * yNames.length)) : Math.min(210, Math.max(110, w * 0.6));
  const log = view.scale["log"] === true && up[1] > 0;
  const scaleY = log ? logScale(up, h) : (v: number): number => ((v - up[0]) / (up[1] - up[0])) * h;
  const axes: Axes = {
    left, top: box.y, w, h, side: box.x + 6, below: 16,
    x: (v) => left + ((v - across[0]) / (across[1] - across[0])) * w,
    // Categories of horizontal bars go down, as in the figure.
    y: (v) => (sideways ? box.y + ((v - up[0]) / (up[1] - up[0])) * h : box.y + h - scaleY(v)),
  };
  let taken = Infinity;
  yTicks.forEach((value, i) => {
    const y = axes.y(value);
    if (y < box.y - 1 || y > box.y + h + 1 || (i && Math.abs(taken - y) < 13)) return;
    taken = y;
    if (!sideways) pen.line([[left, y], [left + w, y]], look.rule, 1);
    pen.text(fitted(pen, yTexts[i]!, SMALL, room), left - 6, y, { size: SMALL, color: look.quiet, align: "right" });
  });
  drawBottom(pen, view, axes, across, job);
  return axes;
}

function logScale([low, high]: Range, h: number): (v: number) => number {
  const floor = low > 0 ? low : high / 1e4;
  const reach = Math.log(high / floor) || 1;
  return (v) => (v <= floor ? 0 : (Math.log(v / floor) / reach) * h);
}

function drawBottom(pen: Pen, view: View, axes: Axes, across: Range, job: Job): void {
  const { look } = job;
  const names = view.kind === "line" ? [] : (view.ticks["x"] ?? []);
  const y = axes.top + axes.h;
  pen.line([[axes.left, y], [axes.left + axes.w, y]], look.axis, 1);
  const ticks = names.length ? names.map((_, i) => i) : niceTicks(across[0], across[1], Math.max(2, Math.floor(axes.w / 70)));
  const texts = names.length ? names : ticks.map((value) => short(value));
  const widest = Math.max(...texts.map((text) => pen.width(text, SMALL)), 0);
  const each = axes.w / Math.max(1, ticks.length);
  // Names that do not fit beside each other stand upright; of many, some are left out.
  const turned = names.length > 0 && widest + 6 > each;
  const every = Math.max(1, Math.ceil((turned ? SMALL + 3 : widest + 6) / each));
  ticks.forEach((value, i) => {
    const x = axes.x(value);
    if (i % every || x < axes.left - 1 || x > axes.left + axes.w + 1) return;
    pen.line([[x, y], [x, y + 4]], look.axis, 1);
    if (turned) pen.text(fitted(pen, texts[i]!, SMALL, MOST_NAME), x, y + 8, { size: SMALL, color: look.quiet, align: "right", turned });
    else pen.text(texts[i]!, x, y + 13, { size: SMALL, color: look.quiet, align: "center" });
  });
  axes.below = turned ? Math.min(widest, MOST_NAME) + 12 : 16;
  const [xLabel, yLabel] = [textOf(view, "x"), textOf(view, "y")];
  if (xLabel) pen.text(fitted(pen, xLabel, SMALL, axes.w), axes.left + axes.w / 2, y + axes.below + 12, { size: SMALL, color: look.ink, align: "center" });
  if (yLabel) pen.text(fitted(pen, yLabel, SMALL, axes.h + 20), axes.side, axes.top + axes.h / 2, { size: SMALL, color: look.ink, align: "center", turned: true });
}

function colorsOf(view: View, job: Job): (group: number) => string {
  const given = view.scale["colors"];
  const drawnDark = String(view.scale["theme"] ?? "").includes("dark");
  // Colours of a figure for the other paper would sink into this one.
  if (Array.isArray(given) && given.length && drawnDark === job.look.dark) {
    return (group) => color(given[group % given.length]) ?? job.look.palette[0]!;
  }
  return (group) => job.look.palette[group % job.look.palette.length]!;
}

function color(value: unknown): string | null {
  return typeof value === "string" && /^#[0-9a-f]{6}([0-9a-f]{2})?$/i.test(value) ? value : null;
}

type Mark = (i: number, x: number, y: number, w?: number, h?: number) => void;
type Colors = (group: number) => string;

function indicesByGroup(data: Data): Map<number, number[]> {
  const groups = new Map<number, number[]>();
  for (let i = 0; i < data.x.length; i++) {
    const group = data.group(i);
    const list = groups.get(group);
    if (list) list.push(i);
    else groups.set(group, [i]);
  }
  return groups;
}

function drawLines(pen: Pen, data: Data, axes: Axes, colors: Colors, mark: Mark): void {
  for (const [group, members] of indicesByGroup(data)) {
    const { low, high } = data;
    const banded = low && high ? members.filter((i) => Number.isFinite(low[i]!) && Number.isFinite(high[i]!)) : [];
    if (banded.length > 1) {
      const upper = banded.map((i): [number, number] => [axes.x(data.x[i]!), axes.y(high![i]!)]);
      const lower = banded.map((i): [number, number] => [axes.x(data.x[i]!), axes.y(low![i]!)]);
      pen.area([...upper, ...lower.reverse()], colors(group), 0.18);
    }
    let piece: [number, number][] = [];
    const end = (): void => {
      if (piece.length > 1) pen.line(piece, colors(group), 1.75);
      else if (piece[0]) pen.dot(piece[0][0], piece[0][1], 2.5, colors(group));
      piece = [];
    };
    for (const i of members) {
      if (!Number.isFinite(data.y[i]!)) {
        end();
        continue;
      }
      const at: [number, number] = [axes.x(data.x[i]!), axes.y(data.y[i]!)];
      piece.push(at);
      mark(i, ...at);
    }
    end();
  }
}

function drawPoints(pen: Pen, data: Data, axes: Axes, colors: Colors, mark: Mark): void {
  const opacity = data.x.length > 500 ? 0.45 : 0.8;
  for (let i = 0; i < data.x.length; i++) {
    const [x, y] = [axes.x(data.x[i]!), axes.y(data.y[i]!)];
    if (!Number.isFinite(x) || !Number.isFinite(y)) continue;
    pen.dot(x, y, data.x.length > 500 ? 2 : 3, colors(data.group(i)), opacity);
    mark(i, x, y);
  }
}

function drawBars(pen: Pen, view: View, data: Data, axes: Axes, colors: Colors, sideways: boolean, mark: Mark): void {
  const groups = new Set(Array.from({ length: data.x.length }, (_, i) => data.group(i)));
  const edges = view.arrays["edges"]?.data;
  const across = sideways ? axes.h : axes.w;
  const pitch = edges ? 0 : across / (data.xRange[1] - data.xRange[0]);
  const shares = view.scale["dodge"] !== false && !edges ? Math.max(1, groups.size) : 1;
  const thick = Math.min((pitch * 0.8) / shares, 60);
  for (let i = 0; i < data.x.length; i++) {
    if (!Number.isFinite(data.y[i]!)) continue;
    const group = data.group(i);
    const bins = edges ? edges.length - 1 : 1;
    const shift = shares > 1 ? (group - (shares - 1) / 2) * thick : 0;
    let [x, y, w, h] = [0, 0, 0, 0];
    if (edges) {
      x = axes.x(edges[i % bins]!);
      w = axes.x(edges[(i % bins) + 1]!) - x;
      y = axes.y(data.y[i]!);
      h = axes.top + axes.h - y;
    } else if (sideways) {
      const zero = axes.x(0);
      const end = axes.x(data.y[i]!);
      [x, w] = [Math.min(zero, end), Math.abs(end - zero)];
      [y, h] = [axes.y(data.x[i]!) + shift - thick / 2, thick];
    } else {
      const zero = axes.y(0);
      const end = axes.y(data.y[i]!);
      [y, h] = [Math.min(zero, end), Math.abs(end - zero)];
      [x, w] = [axes.x(data.x[i]!) + shift - thick / 2, thick];
    }
    pen.rect(x, y, Math.max(w - (edges ? 0.5 : 0), 0.5), Math.max(h, 0.5), colors(groups.size > 1 ? group : 0), edges && groups.size > 1 ? 0.55 : 0.9);
    drawWhisker(pen, data, axes, i, sideways ? y + h / 2 : x + w / 2, sideways);
    mark(i, x, y, w, h);
  }
}

function drawWhisker(pen: Pen, data: Data, axes: Axes, i: number, middle: number, sideways: boolean): void {
  const [low, high] = [data.low?.[i], data.high?.[i]];
  if (low === undefined || high === undefined || !Number.isFinite(low) || !Number.isFinite(high) || low === high) return;
  const ends: [number, number][] = sideways
    ? [[axes.x(low), middle], [axes.x(high), middle]]
    : [[middle, axes.y(low)], [middle, axes.y(high)]];
  pen.line(ends, "#808890", 1.5);
}

function drawLegend(pen: Pen, view: View, colors: Colors, box: Box, axes: Axes, job: Job): number {
  const groups = textsOf(view, "groups").length ? textsOf(view, "groups") : legendTexts(view);
  if (groups.length < 2) return 0;
  let [x, y] = [box.x + 4, axes.top + axes.h + axes.below + (textOf(view, "x") ? 32 : 18)];
  groups.forEach((name, i) => {
    const text = fitted(pen, name, SMALL, 140);
    const w = pen.width(text, SMALL) + 26;
    if (x + w > box.x + box.w && x > box.x + 4) [x, y] = [box.x + 4, y + 16];
    pen.rect(x, y - 4, 8, 8, colors(i));
    pen.text(text, x + 12, y, { size: SMALL, color: job.look.ink });
    x += w;
  });
  return y - axes.top - axes.h - axes.below - (textOf(view, "x") ? 12 : 4);
}

function legendTexts(view: View): string[] {
  const legend = view.labels["legend"];
  if (!Array.isArray(legend)) return [];
  return legend.map((item) => String((item as { label?: unknown } | null)?.label ?? ""));
}

function told(view: View, data: Data, i: number): string {
  const names = view.ticks[view.scale["orient"] === "y" ? "y" : "x"];
  const edges = view.arrays["edges"]?.data;
  const bins = edges ? edges.length - 1 : 1;
  const where = edges
    ? `${short(edges[i % bins])} … ${short(edges[(i % bins) + 1])}`
    : (view.kind === "bar" && names?.[data.x[i]!]) || short(data.x[i]);
  const group = (textsOf(view, "groups").length ? textsOf(view, "groups") : legendTexts(view))[data.group(i)];
  const low = data.low?.[i];
  const bounds = low !== undefined && Number.isFinite(low) ? ` (${short(low)} … ${short(data.high?.[i])})` : "";
  return `${short(data.y[i], 5)}${bounds} at ${where}${group ? `, ${group}` : ""}`;
}
