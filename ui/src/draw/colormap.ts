/** Maps numbers to colours, by the names that figures use. */

import type { Block, View } from "../api/arrays.ts";
import type { Json } from "../api/types.ts";
import { extentOf, robustExtentOf } from "../math/blocks.ts";
import { ANCHORS } from "./anchors.ts";
import type { Look } from "./look.ts";
import type { Pixels } from "./pen.ts";

/** 256 colours, three bytes each. */
export type Table = Uint8Array;

export interface Scale {
  low: number;
  high: number;
  center: number | null;
  log: boolean;
  table: Table;
}

const made = new Map<string, Table>();

export function tableOf(cmap: Json | undefined): Table {
  if (Array.isArray(cmap)) return interpolate(cmap.map(String).filter((c) => /^#[0-9a-f]{6}/i.test(c)).map((c) => c.slice(1, 7)));
  const name = typeof cmap === "string" ? cmap : "viridis";
  const known = made.get(name);
  if (known) return known;
  const plain = name.replace(/_r$/, "");
  // `hasOwn`: the name is a run's, and may be that of a method of every object.
  const anchors = Object.hasOwn(ANCHORS, plain) ? ANCHORS[plain]! : ANCHORS["viridis"]!;
  const colors = anchors.match(/.{6}/g)!;
  if (plain !== name) colors.reverse();
  const table = interpolate(colors);
  made.set(name, table);
  return table;
}

function interpolate(colors: string[]): Table {
  const found = colors.length ? colors : ["808080"];
  const rgb = found.map((c) => [0, 2, 4].map((i) => parseInt(c.slice(i, i + 2), 16)));
  const table = new Uint8Array(256 * 3);
  for (let i = 0; i < 256; i++) {
    const place = (i / 255) * (rgb.length - 1);
    const below = Math.floor(place);
    const above = Math.min(below + 1, rgb.length - 1);
    for (let c = 0; c < 3; c++) {
      table[3 * i + c] = Math.round(rgb[below]![c]! + (rgb[above]![c]! - rgb[below]![c]!) * (place - below));
    }
  }
  return table;
}

export interface Wishes {
  shared: boolean;
  robust: boolean;
}

/** The scale of a View among others that are shown beside it. */
export function scaleOf(view: View, among: readonly View[], wishes: Wishes): Scale {
  const views = wishes.shared ? among : [view];
  const fixed = limitsOf(views);
  const blocks = views.flatMap((v) => (v.arrays["values"] ? [v.arrays["values"]] : []));
  const drawn = wishes.robust ? robustExtentOf(blocks) : (fixed ?? extentOf(blocks));
  let [low, high] = drawn ?? [0, 1];
  const given = numberOr(view.scale["center"]);
  const signed = low < 0 && high > 0;
  const center = given ?? (signed && !view.scale["cmap"] ? 0 : null);
  if (center !== null && (wishes.robust || !fixed)) {
    const reach = Math.max(high - center, center - low) || 1;
    [low, high] = [center - reach, center + reach];
  }
  if (low === high) [low, high] = [low - 0.5, high + 0.5];
  const cmap = view.scale["cmap"] ?? (center === null ? "viridis" : "RdBu_r");
  const log = view.scale["norm"] === "log" && low > 0;
  return { low, high, center, log, table: tableOf(cmap) };
}

/** The limits that all the figures fixed, together; null if one has none. */
function limitsOf(views: readonly View[]): [number, number] | null {
  const lows = views.map((v) => numberOr(v.scale["vmin"]));
  const highs = views.map((v) => numberOr(v.scale["vmax"]));
  if (lows.includes(null) || highs.includes(null)) return null;
  return [Math.min(...(lows as number[])), Math.max(...(highs as number[]))];
}

function numberOr(value: Json | undefined): number | null {
  const number = typeof value === "number" ? value : NaN;
  return Number.isFinite(number) ? number : null;
}

/** The place of a value in the table, 0 to 255. */
export function indexOf(value: number, scale: Scale): number {
  let { low, high } = scale;
  if (scale.center !== null) {
    const reach = Math.max(high - scale.center, scale.center - low);
    [low, high] = [scale.center - reach, scale.center + reach];
  }
  const share = scale.log
    ? (Math.log(value) - Math.log(low)) / (Math.log(high) - Math.log(low))
    : (value - low) / (high - low);
  return share <= 0 || Number.isNaN(share) ? 0 : share >= 1 ? 255 : Math.round(share * 255);
}

export function colorOf(value: number, scale: Scale): string {
  const i = 3 * indexOf(value, scale);
  return `rgb(${scale.table[i]},${scale.table[i + 1]},${scale.table[i + 2]})`;
}

/** Black or white, whichever is read on the colour of a value. */
export function inkOn(value: number, scale: Scale): string {
  const i = 3 * indexOf(value, scale);
  const [r, g, b] = [scale.table[i]!, scale.table[i + 1]!, scale.table[i + 2]!];
  return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#1f2328" : "#ffffff";
}

export interface Window {
  top: number;
  bottom: number;
  left: number;
  right: number;
}

/** The cells of a window as pixels, one each. */
export function pixelsOf(
  block: Block,
  offset: number,
  columns: number,
  shown: Window,
  scale: Scale,
  look: Look,
  mask?: Block,
): Pixels {
  const width = shown.right - shown.left;
  const height = shown.bottom - shown.top;
  const data = new Uint8ClampedArray(4 * width * height);
  let out = 0;
  for (let row = shown.top; row < shown.bottom; row++) {
    let at = offset + row * columns + shown.left;
    for (let col = 0; col < width; col++, at++, out += 4) {
      if (mask?.data[at]) continue;
      const value = block.data[at]!;
      if (Number.isFinite(value)) {
        const i = 3 * indexOf(value, scale);
        data[out] = scale.table[i]!;
        data[out + 1] = scale.table[i + 1]!;
        data[out + 2] = scale.table[i + 2]!;
      } else {
        const [r, g, b] = Number.isNaN(value) ? look.nan : value > 0 ? look.above : look.below;
        data[out] = r;
        data[out + 1] = g;
        data[out + 2] = b;
      }
      data[out + 3] = 255;
    }
  }
  return { data, width, height };
}
