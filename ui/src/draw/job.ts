/** What a drawing needs to know beside its View. */

import type { Look } from "./look.ts";
import type { Window } from "./colormap.ts";
import type { Scale } from "./colormap.ts";
import type { Hit } from "./hits.ts";

export interface Job {
  look: Look;
  scale: Scale;
  /** The cells of a heatmap that are shown; null shows all. */
  zoom: Window | null;
  /** The limits of the y axis of series; null finds them in the View. */
  limits: [number, number] | null;
}

export interface Box {
  x: number;
  y: number;
  w: number;
}

export interface Drawn {
  height: number;
  hits: Hit[];
}

/** The number of the panel that is drawn, in a View of several. */
export type PanelNumber = number;

export const SMALL = 11;
export const TEXT = 12;
