/** A pen that writes an SVG; every text of a run is escaped. */

import { canvasOf, MONO, SANS, widthOf, type Pen } from "./pen.ts";

const ESCAPES: Record<string, string> = {
  "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;",
};

export function escaped(text: string): string {
  // Control characters are no XML, escaped or not.
  // eslint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, "").replace(/[&<>"']/g, (c) => ESCAPES[c]!);
}

export interface SvgPen extends Pen {
  finish(width: number, height: number, paper: string): string;
}

export function svgPen(): SvgPen {
  const parts: string[] = [];
  const round = (n: number): string => String(Math.round(n * 100) / 100);
  const list = (points: readonly (readonly [number, number])[]): string =>
    points.map(([x, y]) => `${round(x)},${round(y)}`).join(" ");
  const anchors = { left: "start", center: "middle", right: "end" };
  const bases = { top: "hanging", middle: "central", bottom: "alphabetic" };
  return {
    rect: (x, y, w, h, fill, opacity = 1) =>
      void parts.push(`<rect x="${round(x)}" y="${round(y)}" width="${round(w)}" height="${round(h)}" fill="${escaped(fill)}" opacity="${opacity}"/>`),
    frame: (x, y, w, h, stroke, width = 1) =>
      void parts.push(`<rect x="${round(x)}" y="${round(y)}" width="${round(w)}" height="${round(h)}" fill="none" stroke="${escaped(stroke)}" stroke-width="${width}"/>`),
    line: (points, stroke, width = 1, dash = []) =>
      void parts.push(`<polyline points="${list(points)}" fill="none" stroke="${escaped(stroke)}" stroke-width="${width}"${dash.length ? ` stroke-dasharray="${dash.join(" ")}"` : ""}/>`),
    area: (points, fill, opacity) =>
      void parts.push(`<polygon points="${list(points)}" fill="${escaped(fill)}" opacity="${opacity}"/>`),
    dot: (x, y, radius, fill, opacity = 1) =>
      void parts.push(`<circle cx="${round(x)}" cy="${round(y)}" r="${radius}" fill="${escaped(fill)}" opacity="${opacity}"/>`),
    text: (text, x, y, style) => {
      const turned = style.turned ? ` transform="rotate(-90 ${round(x)} ${round(y)})"` : "";
      parts.push(
        `<text x="${round(x)}" y="${round(y)}" font-size="${style.size}" font-family="${escaped(style.mono ? MONO : SANS)}" fill="${escaped(style.color)}"` +
          ` text-anchor="${anchors[style.align ?? "left"]}" dominant-baseline="${bases[style.base ?? "middle"]}"${style.bold ? ' font-weight="600"' : ""}${turned}>${escaped(text)}</text>`,
      );
    },
    image: (make, x, y, w, h) => {
      const pixels = make();
      if (!pixels.width || !pixels.height) return;
      const data = canvasOf(pixels).toDataURL("image/png");
      parts.push(`<image x="${round(x)}" y="${round(y)}" width="${round(w)}" height="${round(h)}" preserveAspectRatio="none" style="image-rendering:pixelated" href="${data}"/>`);
    },
    width: widthOf,
    finish: (width, height, paper) =>
      `<svg xmlns="http://www.w3.org/2000/svg" width="${round(width)}" height="${round(height)}" viewBox="0 0 ${round(width)} ${round(height)}">` +
      `<rect width="100%" height="100%" fill="${paper}"/>${parts.join("")}</svg>`,
  };
}
