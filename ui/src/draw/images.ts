/** Draws several small images, grey or coloured, beside each other. */

import type { View } from "../api/arrays.ts";
import { short } from "../math/numbers.ts";
import { pixelsOf } from "./colormap.ts";
import type { Hit } from "./hits.ts";
import { SMALL, TEXT, type Box, type Drawn, type Job } from "./job.ts";
import type { Pen, Pixels } from "./pen.ts";
import { fitted, textOf, textsOf } from "./texts.ts";

export function drawImages(pen: Pen, view: View, box: Box, job: Job): Drawn {
  const values = view.arrays["values"];
  const [count = 0, rows = 0, cols = 0, channels = 0] = values?.shape ?? [];
  if (!values || !count || !rows || !cols) return { height: 0, hits: [] };
  const names = textsOf(view, "panels");
  const title = textOf(view, "title");
  if (title) pen.text(fitted(pen, title, TEXT, box.w), box.x, box.y + 8, { size: TEXT, color: job.look.ink, bold: true });
  const wanted = Number(view.scale["cols"]) || Math.ceil(Math.sqrt(count));
  const across = Math.max(1, Math.min(count, wanted, Math.floor(box.w / 48)));
  const w = Math.min((box.w - 6 * (across - 1)) / across, 160);
  const h = (w * rows) / cols;
  const head = names.some(Boolean) ? 16 : 0;
  const top = box.y + (title ? 22 : 4);
  const hits: Hit[] = [];
  for (let i = 0; i < count; i++) {
    const x = box.x + (i % across) * (w + 6);
    const y = top + Math.floor(i / across) * (h + head + 6);
    if (head) pen.text(fitted(pen, names[i] ?? "", SMALL, w), x, y + 7, { size: SMALL, color: job.look.quiet });
    const whole = { top: 0, bottom: rows, left: 0, right: cols };
    const make = (): Pixels => channels ? coloured(values.data, i, rows, cols, channels) : pixelsOf(values, i * rows * cols, cols, whole, job.scale, job.look);
    pen.image(make, x, y + head, w, h);
    hits.push({
      kind: "cells", panel: i, x, y: y + head, w, h, top: 0, left: 0, rows, cols,
      value: (row, col) => values.data[((i * rows + row) * cols + col) * (channels || 1)]!,
      label: (row, col) => {
        const at = ((i * rows + row) * cols + col) * (channels || 1);
        const numbers = Array.from(values.data.slice(at, at + (channels || 1)), (v) => short(v));
        return `${numbers.join(", ")} at ${row}, ${col} of ${names[i] || i}`;
      },
    });
  }
  return { height: top + Math.ceil(count / across) * (h + head + 6) - box.y, hits };
}

function coloured(data: ArrayLike<number>, image: number, rows: number, cols: number, channels: number): Pixels {
  const pixels = new Uint8ClampedArray(4 * rows * cols);
  for (let i = 0; i < rows * cols; i++) {
    const at = (image * rows * cols + i) * channels;
    for (let c = 0; c < 3; c++) pixels[4 * i + c] = 255 * data[at + Math.min(c, channels - 1)]!;
    pixels[4 * i + 3] = channels > 3 ? 255 * data[at + 3]! : 255;
  }
  return { data: pixels, width: cols, height: rows };
}
