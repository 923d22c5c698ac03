/** A pen that draws on a canvas. */

import { canvasOf, font, widthOf, type Pen } from "./pen.ts";

export function canvasPen(ctx: CanvasRenderingContext2D): Pen {
  const path = (points: readonly (readonly [number, number])[]): void => {
    ctx.beginPath();
    points.forEach(([x, y], i) => (i ? ctx.lineTo(x, y) : ctx.moveTo(x, y)));
  };
  return {
    rect(x, y, w, h, fill, opacity = 1) {
      ctx.globalAlpha = opacity;
      ctx.fillStyle = fill;
      ctx.fillRect(x, y, w, h);
      ctx.globalAlpha = 1;
    },
    frame(x, y, w, h, stroke, width = 1) {
      ctx.strokeStyle = stroke;
      ctx.lineWidth = width;
      ctx.strokeRect(x, y, w, h);
    },
    line(points, stroke, width = 1, dash = []) {
      path(points);
      ctx.strokeStyle = stroke;
      ctx.lineWidth = width;
      ctx.lineJoin = "round";
      ctx.setLineDash(dash);
      ctx.stroke();
      ctx.setLineDash([]);
    },
    area(points, fill, opacity) {
      path(points);
      ctx.closePath();
      ctx.globalAlpha = opacity;
      ctx.fillStyle = fill;
      ctx.fill();
      ctx.globalAlpha = 1;
    },
    dot(x, y, radius, fill, opacity = 1) {
      ctx.beginPath();
      ctx.arc(x, y, radius, 0, 2 * Math.PI);
      ctx.globalAlpha = opacity;
      ctx.fillStyle = fill;
      ctx.fill();
      ctx.globalAlpha = 1;
    },
    text(text, x, y, style) {
      ctx.font = font(style.size, style.mono, style.bold);
      ctx.fillStyle = style.color;
      ctx.textAlign = style.align ?? "left";
      ctx.textBaseline = style.base ?? "middle";
      if (!style.turned) {
        ctx.fillText(text, x, y);
        return;
      }
      ctx.save();
      ctx.translate(x, y);
      ctx.rotate(-Math.PI / 2);
      ctx.fillText(text, 0, 0);
      ctx.restore();
    },
    image(make, x, y, w, h) {
      const pixels = make();
      if (!pixels.width || !pixels.height) return;
      // Cells stay cells when enlarged, and are averaged when they are below a pixel.
      ctx.imageSmoothingEnabled = pixels.width > 2 * w || pixels.height > 2 * h;
      ctx.drawImage(canvasOf(pixels), x, y, w, h);
    },
    width: widthOf,
  };
}
