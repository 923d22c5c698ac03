/** One panel: a View, a table or an image, under a heading that says what it is of. */

import type { Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { address } from "../api/client.ts";
import type { Panel, View } from "../api/arrays.ts";
import { scaleOf, type Window, type Wishes } from "../draw/colormap.ts";
import type { Pointed } from "../draw/hits.ts";
import { extentOf } from "../math/blocks.ts";
import { plainText } from "../draw/texts.ts";
import { place, set } from "../state/place.ts";
import { look } from "../state/theme.ts";
import { Drawing, toSvg } from "./drawing.tsx";
import { save } from "./save.ts";

export function Cell({ heading, note, children }: { heading: ComponentChildren; note?: ComponentChildren; children: ComponentChildren }) {
  return (
    <article class="cell">
      <div class="cell-head"><h3>{heading}</h3>{note && <span class="quiet">{note}</span>}</div>
      {children}
    </article>
  );
}

interface ViewProps {
  view: View;
  /** All Views that share the scale. */
  among: readonly View[];
  pointed: Signal<Pointed | null>;
  label: string;
  painted: string;
}

export function ViewPanel({ view, among, pointed, label, painted }: ViewProps) {
  const { shared, robust, zoom } = place.value;
  const wishes: Wishes = { shared, robust };
  const scale = scaleOf(view, among, wishes);
  const window: Window | null = zoom && { top: zoom[0], bottom: zoom[1], left: zoom[2], right: zoom[3] };
  const limits = shared ? extentOf(among.flatMap(measured)) : null;
  const setZoom = (z: Window | null): void => set({ zoom: z && [z.top, z.bottom, z.left, z.right] });
  const job = { look: look.value, scale, zoom: window, limits };
  const stem = label.replace(/[^A-Za-z0-9._-]+/g, "_");
  const png = (event: MouseEvent): void => {
    const canvas = (event.currentTarget as HTMLElement).closest("article")?.querySelector("canvas");
    canvas?.toBlob((blob) => blob && save(blob, `${stem}.png`));
  };
  const svg = (): void => save(new Blob([toSvg(view, 640, job, wishes)], { type: "image/svg+xml" }), `${stem}.svg`);
  return (
    <Drawing view={view} scale={scale} wishes={wishes} limits={limits} zoom={window} setZoom={setZoom} pointed={pointed} label={label} painted={painted} caption={plainText(view.caption)}>
      <span class="save">
        <button type="button" class="text" aria-label={`Save ${label} as PNG`} onClick={png}>PNG</button>
        <button type="button" class="text" aria-label={`Save ${label} as SVG`} onClick={svg}>SVG</button>
      </span>
    </Drawing>
  );
}

/** The numbers on the y axis of a series. */
function measured(view: View) {
  if (!["line", "scatter", "bar"].includes(view.kind)) return [];
  const blocks = ["y", "low", "high"].flatMap((role) => view.arrays[role] ?? []);
  return view.kind === "bar" ? [...blocks, { data: new Float32Array([0]), shape: [1] }] : blocks;
}

/** The address of the image of a part; null when it has none. */
export function imageOf(panel: Pick<Panel, "run" | "blobs">, part: string): string | null {
  const blob = panel.blobs.find((b) => b.part === part && b.suffix === "png");
  return blob ? address(`runs/${panel.run}/files/${blob.digest}`) : null;
}
