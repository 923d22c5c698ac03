/** Turns what the server sends into typed arrays. */

import type { Json, WireArray, WirePanel, WireView } from "./types.ts";

/** Numbers with their shape, in C order. */
export interface Block {
  data: Float32Array | Float64Array;
  shape: number[];
}

/** What a plotting helper drew, as data. */
export interface View {
  kind: string;
  arrays: Record<string, Block>;
  labels: Record<string, Json>;
  ticks: Record<string, string[]>;
  scale: Record<string, Json>;
  caption: string;
}

export interface Panel extends Omit<WirePanel, "views" | "fallback"> {
  /** By part; of results without a View, the values of at most two axes. */
  views: Record<string, View>;
}

export function decodeArray(wire: WireArray): Block {
  const text = atob(wire.data);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const data =
    wire.dtype === "float32"
      ? new Float32Array(bytes.buffer)
      : new Float64Array(bytes.buffer);
  return { data, shape: wire.shape };
}

export function decodeView(wire: WireView): View {
  const arrays: Record<string, Block> = {};
  for (const [role, array] of Object.entries(wire.arrays)) {
    arrays[role] = decodeArray(array);
  }
  return { ...wire, arrays };
}

/** The Views of a result; its values as such where nothing else can be shown. */
export function decodeViews(
  { views, fallback, tables }: Pick<WirePanel, "views" | "fallback" | "tables">,
): Record<string, View> {
  const drawn = Object.keys(views).length + Object.keys(tables).length > 0;
  const chosen = drawn ? views : fallback;
  return Object.fromEntries(
    Object.entries(chosen).map(([part, view]) => [part, decodeView(view)]),
  );
}

export function decodePanel(wire: WirePanel): Panel {
  const { views: _views, fallback: _fallback, ...rest } = wire;
  return { ...rest, views: decodeViews(wire) };
}

/** A number as strict JSON writes it: "NaN" and "Infinity" are texts. */
export function toNumber(value: number | string | null | undefined): number {
  return value === null || value === undefined ? NaN : Number(value);
}
