/** A View on a canvas: drawn to its width, pointed at, zoomed into. */

import type { Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { View } from "../api/arrays.ts";
import { canvasPen } from "../draw/canvas_pen.ts";
import type { Scale, Window, Wishes } from "../draw/colormap.ts";
import { outlineOf, pointedAt, toldAt, type CellHit, type Hit, type Pointed } from "../draw/hits.ts";
import { svgPen } from "../draw/svg_pen.ts";
import { drawView } from "../draw/view.ts";
import { look } from "../state/theme.ts";

interface Props {
  view: View;
  scale: Scale;
  wishes: Wishes;
  limits: [number, number] | null;
  zoom: Window | null;
  setZoom: (zoom: Window | null) => void;
  pointed: Signal<Pointed | null>;
  label: string;
  painted: string;
  /** Said below while nothing is pointed at. */
  caption: string;
  children: ComponentChildren;
}

const MOST_HEIGHT = 6000;

export function Drawing(props: Props) {
  const { view, scale, wishes, limits, zoom, pointed, label, painted } = props;
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const hits = useRef<Hit[]>([]);
  const [width, setWidth] = useState(0);
  const [dragged, setDragged] = useState<Drag | null>(null);
  const theme = look.value;

  useLayoutEffect(() => {
    const element = frame.current!;
    const watch = new ResizeObserver(() => setWidth(Math.floor(element.clientWidth)));
    watch.observe(element);
    setWidth(Math.floor(element.clientWidth));
    return () => watch.disconnect();
  }, []);

  useLayoutEffect(() => {
    if (!width || !canvas.current) return;
    const job = { look: theme, scale, zoom, limits };
    hits.current = paint(canvas.current, view, width, job, wishes);
    canvas.current.dataset["painted"] = painted;
  }, [view, scale, zoom, limits, width, theme, painted, wishes]);

  const place = (event: { offsetX: number; offsetY: number }): Pointed | null =>
    pointedAt(hits.current, event.offsetX, event.offsetY);

  const move = (event: PointerEvent): void => {
    if (dragged) setDragged({ ...dragged, x1: event.offsetX, y1: event.offsetY });
    else pointed.value = place(event);
  };

  const end = (): void => {
    if (dragged) props.setZoom(windowOf(hits.current, dragged) ?? zoom);
    setDragged(null);
  };

  const keys = (event: KeyboardEvent): void => {
    const step = MOVES[event.key];
    if (event.key === "Escape" && zoom) props.setZoom(null);
    if (!step) return;
    // Arrows move the cell here; outside of a drawing they move the step.
    event.preventDefault();
    event.stopPropagation();
    pointed.value = moved(hits.current, pointed.value, step);
  };

  const at = pointed.value;
  const outline = at && outlineOf(hits.current, at);
  return (
    <div class="drawing" ref={frame}>
      <canvas
        ref={canvas} role="img" tabIndex={0} aria-label={`${label}. Arrow keys read its cells.`}
        onPointerMove={move} onPointerLeave={() => (pointed.value = null)} onPointerUp={end}
        onPointerDown={(e) => e.button === 0 && e.pointerType === "mouse" && setDragged({ x0: e.offsetX, y0: e.offsetY, x1: e.offsetX, y1: e.offsetY })}
        onDblClick={() => props.setZoom(null)} onKeyDown={keys}
      />
      {outline && <Box rect={outline} kind="pointed" />}
      {dragged && Math.hypot(dragged.x1 - dragged.x0, dragged.y1 - dragged.y0) > 4 && <Box rect={rectOf(dragged)} kind="dragged" />}
      <div class="cell-foot">
        {at ? <span class="readout">{toldAt(hits.current, at) ?? "no such cell"}</span> : <span class="caption" title={props.caption}>{props.caption}</span>}
        {props.children}
      </div>
    </div>
  );
}

interface Drag {
  x0: number;
  y0: number;
  x1: number;
  y1: number;
}

const MOVES: Record<string, [number, number]> = {
  ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
};

function moved(hits: readonly Hit[], at: Pointed | null, [down, right]: [number, number]): Pointed | null {
  const first = hits[0];
  if (!first) return null;
  const panel = at?.panel ?? first.panel;
  const cells = hits.find((hit): hit is CellHit => hit.kind === "cells" && hit.panel === panel);
  if (!cells) {
    const marks = hits.filter((hit) => hit.panel === panel).length;
    return { panel, row: 0, col: at ? clamp(at.col + right + down, 0, marks - 1) : 0 };
  }
  if (!at) return { panel, row: cells.top, col: cells.left };
  return {
    panel,
    row: clamp(at.row + down, cells.top, cells.top + cells.rows - 1),
    col: clamp(at.col + right, cells.left, cells.left + cells.cols - 1),
  };
}

const clamp = (n: number, low: number, high: number): number => Math.min(Math.max(n, low), high);

const rectOf = (d: Drag): [number, number, number, number] =>
  [Math.min(d.x0, d.x1), Math.min(d.y0, d.y1), Math.abs(d.x1 - d.x0), Math.abs(d.y1 - d.y0)];

/** The cells between the ends of a drag; none when it was a click. */
function windowOf(hits: readonly Hit[], drag: Drag): Window | null {
  const [x, y, w, h] = rectOf(drag);
  if (w < 5 || h < 5) return null;
  const cells = hits.find((hit): hit is CellHit => hit.kind === "cells" && drag.x0 >= hit.x && drag.x0 < hit.x + hit.w && drag.y0 >= hit.y && drag.y0 < hit.y + hit.h);
  if (!cells) return null;
  const row = (at: number): number => cells.top + clamp(Math.floor(((at - cells.y) / cells.h) * cells.rows), 0, cells.rows - 1);
  const col = (at: number): number => cells.left + clamp(Math.floor(((at - cells.x) / cells.w) * cells.cols), 0, cells.cols - 1);
  return { top: row(y), bottom: row(y + h) + 1, left: col(x), right: col(x + w) + 1 };
}

function Box({ rect, kind }: { rect: [number, number, number, number]; kind: string }) {
  const [x, y, w, h] = rect;
  return <div class={`box ${kind}`} style={{ left: `${x}px`, top: `${y}px`, width: `${Math.max(w, 3)}px`, height: `${Math.max(h, 3)}px` }} />;
}

type PaintJob = Parameters<typeof drawView>[3];

/** Draw twice: once to learn how high it becomes. */
function paint(canvas: HTMLCanvasElement, view: View, width: number, job: PaintJob, wishes: Wishes): Hit[] {
  const ratio = Math.min(devicePixelRatio || 1, 2);
  const box = { x: 0, y: 0, w: width };
  const silent = silentPen();
  const height = Math.min(Math.ceil(drawView(silent, view, box, job, wishes).height), MOST_HEIGHT);
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.height = `${height}px`;
  const ctx = canvas.getContext("2d")!;
  ctx.scale(ratio, ratio);
  return drawView(canvasPen(ctx), view, box, job, wishes).hits;
}

function silentPen(): ReturnType<typeof canvasPen> {
  const none = (): void => undefined;
  const { width } = svgPen();
  return { rect: none, frame: none, line: none, area: none, dot: none, text: none, image: none, width };
}

/** A View as an SVG text. */
export function toSvg(view: View, width: number, job: PaintJob, wishes: Wishes): string {
  const pen = svgPen();
  const { height } = drawView(pen, view, { x: 8, y: 8, w: width }, job, wishes);
  return pen.finish(width + 16, height + 16, job.look.paper);
}
