/** What drawings are made with: the same calls draw on a canvas and into an SVG. */

export interface Pixels {
  data: Uint8ClampedArray;
  width: number;
  height: number;
}

export interface TextStyle {
  size: number;
  color: string;
  align?: "left" | "center" | "right";
  base?: "top" | "middle" | "bottom";
  turned?: boolean;
  bold?: boolean;
  mono?: boolean;
}

export interface Pen {
  rect(x: number, y: number, w: number, h: number, fill: string, opacity?: number): void;
  frame(x: number, y: number, w: number, h: number, stroke: string, width?: number): void;
  line(points: readonly (readonly [number, number])[], stroke: string, width?: number, dash?: number[]): void;
  area(points: readonly (readonly [number, number])[], fill: string, opacity: number): void;
  dot(x: number, y: number, radius: number, fill: string, opacity?: number): void;
  text(text: string, x: number, y: number, style: TextStyle): void;
  /** Pixels are made only where they are drawn: a first pass only measures. */
  image(make: () => Pixels, x: number, y: number, w: number, h: number): void;
  /** The width of a text, in the units of the drawing. */
  width(text: string, size: number, mono?: boolean): number;
}

export const SANS = 'system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif';
export const MONO = 'ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';

let ruler: CanvasRenderingContext2D | null = null;

export function font(size: number, mono = false, bold = false): string {
  return `${bold ? "600 " : ""}${size}px ${mono ? MONO : SANS}`;
}

export function widthOf(text: string, size: number, mono = false): number {
  ruler ??= document.createElement("canvas").getContext("2d")!;
  ruler.font = font(size, mono);
  return ruler.measureText(text).width;
}

/** Pixels on a canvas of their own, to be drawn larger or sent as PNG. */
export function canvasOf(pixels: Pixels): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.width = pixels.width;
  canvas.height = pixels.height;
  const data = new ImageData(pixels.width, pixels.height);
  data.data.set(pixels.data);
  canvas.getContext("2d")!.putImageData(data, 0, 0);
  return canvas;
}
