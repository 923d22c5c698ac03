/** Draws any View. */

import type { Block, View } from "../api/arrays.ts";
import { drawHeatmap } from "./heatmap.ts";
import type { Hit } from "./hits.ts";
import { drawImages } from "./images.ts";
import { TEXT, type Box, type Drawn, type Job } from "./job.ts";
import type { Pen } from "./pen.ts";
import { drawSeries } from "./series.ts";
import { drawStrip } from "./strip.ts";
import { fitted, textOf, textsOf } from "./texts.ts";
import { scaleOf, type Wishes } from "./colormap.ts";

/** The panels of a View of several, each as a View of its own; else the View alone. */
export function panelsOf(view: View): View[] {
  if (view.kind === "grid") return gridPanels(view);
  const values = view.arrays["values"];
  if (view.kind !== "heatmap" || !values || values.shape.length < 3) return [view];
  const [count = 0, rows = 0, cols = 0] = values.shape;
  const names = textsOf(view, "panels");
  const { title: _, ...labels } = view.labels;
  return Array.from({ length: count }, (_unused, i) => ({
    ...view,
    arrays: Object.fromEntries(Object.entries(view.arrays).map(([role, block]) => [role, slice(block, i, rows, cols)])),
    labels: { ...labels, title: names[i] || String(i), panels: null, annot: Array.isArray(view.labels["annot"]) ? view.labels["annot"][i]! : null },
  }));
}

function slice(block: Block, index: number, rows: number, cols: number): Block {
  const size = rows * cols;
  return { data: block.data.slice(index * size, (index + 1) * size), shape: [rows, cols] };
}

function gridPanels(view: View): View[] {
  const panels = view.labels["panels"];
  if (!Array.isArray(panels)) return [];
  return panels.map((panel, i) => {
    const prefix = `${i}/`;
    const arrays = Object.fromEntries(
      Object.entries(view.arrays).filter(([role]) => role.startsWith(prefix)).map(([role, block]) => [role.slice(prefix.length), block]),
    );
    const rest = (panel ?? {}) as unknown as Omit<View, "arrays">;
    return { kind: String(rest.kind), labels: rest.labels ?? {}, ticks: rest.ticks ?? {}, scale: { ...rest.scale, ...(view.scale["cmap"] === "RdBu_r" && view.scale["center"] === 0 ? { cmap: "RdBu_r", center: 0, vmin: null, vmax: null } : {}) }, caption: "", arrays };
  });
}

const LEAST_PANEL = 190;

/** Draw a View into a box of some width. */
export function drawView(pen: Pen, view: View, box: Box, job: Job, wishes: Wishes): Drawn {
  const panels = panelsOf(view);
  if (panels.length === 1 && view.kind !== "grid") return drawOne(pen, panels[0]!, box, job, 0);
  const title = textOf(view, "title");
  let y = box.y + (title ? 24 : 0);
  if (title) pen.text(fitted(pen, title, TEXT + 1, box.w), box.x, box.y + 8, { size: TEXT + 1, color: job.look.ink, bold: true });
  const across = Math.max(1, Math.min(panels.length, Math.floor(box.w / LEAST_PANEL)));
  const w = (box.w - 12 * (across - 1)) / across;
  const hits: Hit[] = [];
  for (let start = 0; start < panels.length; start += across) {
    let tallest = 0;
    panels.slice(start, start + across).forEach((panel, i) => {
      const own = view.kind === "grid" && panel.arrays["values"] ? { ...job, scale: scaleOf(panel, [panel], wishes) } : job;
      const drawn = drawOne(pen, panel, { x: box.x + i * (w + 12), y, w }, own, start + i);
      hits.push(...drawn.hits.map((hit) => ({ ...hit, panel: start + i })));
      tallest = Math.max(tallest, drawn.height);
    });
    y += tallest + 8;
  }
  return { height: y - box.y, hits };
}

function drawOne(pen: Pen, view: View, box: Box, job: Job, panel: number): Drawn {
  switch (view.kind) {
    case "heatmap": return drawHeatmap(pen, view, box, job);
    case "image_grid": return drawImages(pen, view, box, job);
    case "token_strip": return drawStrip(pen, view, box, job, panel);
    case "line": case "bar": case "scatter": case "histogram": return drawSeries(pen, view, box, job, panel);
    default: {
      pen.text(`This page cannot draw a ${view.kind}; see the figure.`, box.x, box.y + 14, { size: TEXT, color: job.look.quiet });
      return { height: 28, hits: [] };
    }
  }
}
