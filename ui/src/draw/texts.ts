/** The texts of a View, whatever somebody wrote into its place. */

import type { View } from "../api/arrays.ts";
import type { Json } from "../api/types.ts";
import type { Pen } from "./pen.ts";

export function textOf(view: View, role: string): string {
  return plainText(view.labels[role]);
}

/** Matplotlib's maths between dollars, as far as plain text can say it. */
export function plainText(value: Json | undefined): string {
  if (value === null || value === undefined || typeof value === "object") return "";
  return String(value).replace(/\$([^$]*)\$/g, (_, math: string) =>
    math.replace(/\\(mathrm|mathbf|text)\{([^}]*)\}/g, "$2").replace(/\\([a-z]+)/gi, "$1").replace(/[{}]/g, ""),
  );
}

export function textsOf(view: View, role: string): string[] {
  const found = view.labels[role];
  return Array.isArray(found) ? found.map((item) => plainText(item)) : [];
}

/** A text cut so that it fits. */
export function fitted(pen: Pen, text: string, size: number, width: number): string {
  if (pen.width(text, size) <= width) return text;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (pen.width(`${text.slice(0, middle)}…`, size) <= width) low = middle;
    else high = middle - 1;
  }
  return low ? `${text.slice(0, low)}…` : "";
}
