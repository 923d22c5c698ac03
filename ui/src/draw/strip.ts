/** Draws a sequence of tokens, each on the colour of its number. */

import type { View } from "../api/arrays.ts";
import { short } from "../math/numbers.ts";
import { colorOf, inkOn } from "./colormap.ts";
import type { MarkHit } from "./hits.ts";
import { TEXT, type Box, type Drawn, type Job } from "./job.ts";
import type { Pen } from "./pen.ts";
import { fitted, textOf, textsOf } from "./texts.ts";

const LINE = 24;

export function drawStrip(pen: Pen, view: View, box: Box, job: Job, panel = 0): Drawn {
  const values = view.arrays["values"]?.data ?? [];
  const tokens = textsOf(view, "tokens");
  const title = textOf(view, "title");
  if (title) pen.text(fitted(pen, title, TEXT, box.w), box.x, box.y + 8, { size: TEXT, color: job.look.ink, bold: true });
  const hits: MarkHit[] = [];
  let x = box.x;
  let y = box.y + (title ? 22 : 4);
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    const shown = visible(tokens[i] ?? String(i));
    const text = fitted(pen, shown, TEXT, box.w - 12);
    const w = pen.width(text, TEXT, true) + 8;
    if (x + w > box.x + box.w && x > box.x) {
      x = box.x;
      y += LINE;
    }
    const finite = Number.isFinite(value);
    pen.rect(x, y, w, LINE - 3, finite ? colorOf(value, job.scale) : `rgb(${job.look.nan.join(",")})`);
    pen.text(text, x + 4, y + (LINE - 3) / 2, { size: TEXT, color: finite ? inkOn(value, job.scale) : "#fff", mono: true });
    hits.push({ kind: "mark", panel, index: i, x, y, w, h: LINE - 3, text: `${short(value, 5)} at ${i} “${shown}”` });
    x += w + 2;
  }
  return { height: y + LINE - box.y + 4, hits };
}

function visible(token: string): string {
  return token.replace(/ /g, "·").replace(/\n/g, "⏎").replace(/\t/g, "⇥") || "∅";
}
