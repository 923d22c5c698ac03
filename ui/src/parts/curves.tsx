/** The curves of the chosen runs' metrics; a click goes to its step. */

import { useEffect, useMemo, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { getCurves } from "../api/client.ts";
import { toNumber } from "../api/arrays.ts";
import type { WireCurve } from "../api/types.ts";
import { short } from "../math/numbers.ts";
import { smoothed } from "../math/smooth.ts";
import { indexAtOrBefore } from "../math/steps.ts";
import { slotColor, slotDash } from "../draw/look.ts";
import { chosen, revisions, titles } from "../state/library.ts";
import { useLoad } from "../state/load.ts";
import { place, set } from "../state/place.ts";
import { look } from "../state/theme.ts";
import { Choice, Menu, Toggle } from "./controls.tsx";

type Curves = Record<string, Record<string, WireCurve>>;

export function CurveBoard({ step, setStep }: { step: number | null; setStep: (step: number) => void }) {
  const { metrics, x, logX, logY, smooth } = place.value;
  const now = chosen.value;
  const known = useMemo(() => [...new Set(now.flatMap((one) => one.run.metrics))].sort(), [now]);
  const shown = metrics.filter((m) => known.includes(m));
  const names = shown.length ? shown : startMetrics(known);
  const revision = now.map((one) => revisions.value[one.key] ?? 0).join(".");
  const keys = now.map((one) => one.key);
  const key = names.length ? `${keys.join()} ${names.join()} ${revision}` : null;
  const { data, error } = useLoad<Curves>(key, (signal) => getCurves(keys, names, signal));
  if (!known.length) return <p class="quiet">These runs have no metrics. <code>run.log_metrics({"{"}"loss": 1.0{"}"}, step=1)</code> writes one.</p>;
  return (
    <section class="card" aria-label="Metrics">
      <div class="bar tight">
        <Menu label="Metrics" options={known} chosen={names} set={(m) => set({ metrics: m })} />
        <Choice label="x" value={x} set={(v) => set({ x: v })} options={[["step", "step"], ["tokens", "tokens"], ["time", "wall time"]]} />
        <Toggle on={logX} set={(on) => set({ logX: on })}>log x</Toggle>
        <Toggle on={logY} set={(on) => set({ logY: on })}>log y</Toggle>
        <label class="choice"><span>Smooth</span><input type="range" min="0" max="0.99" step="0.01" value={smooth} onInput={(e) => set({ smooth: Number(e.currentTarget.value) })} /></label>
      </div>
      {error && <p class="bad" role="alert">{error}</p>}
      <div class="curves">
        {names.map((name) => <Curve key={name} name={name} curves={data} step={step} setStep={setStep} />)}
      </div>
    </section>
  );
}

function startMetrics(known: string[]): string[] {
  const losses = known.filter((name) => /loss/i.test(name));
  return (losses.length ? losses : known).slice(0, 2);
}

const HEIGHT = 180;

interface CurveProps {
  name: string;
  curves: Curves | null;
  step: number | null;
  setStep: (step: number) => void;
}

function Curve({ name, curves, step, setStep }: CurveProps) {
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  // uPlot's hooks live as long as the plot; they read what is current through these.
  const marked = useRef<(number | null)[]>([]);
  const chosenStep = useRef(setStep);
  chosenStep.current = setStep;
  const { x, logX, logY, smooth } = place.value;
  const now = chosen.value;
  const theme = look.value;
  const lines = useMemo(
    () => now.map((one) => ({ ...one, curve: curves?.[one.key]?.[name] })),
    [now, curves, name],
  );
  marked.current = lines.map(({ curve }) => (curve && step !== null ? placeOf(curve, step, x) : null));

  useEffect(() => {
    const element = frame.current!;
    const drawn = lines.filter(({ curve }) => curve?.step.length);
    const data = joined(drawn.map(({ curve }) => columnsOf(curve!, x, logX, logY, smooth)));
    const made = new uPlot(
      {
        width: element.clientWidth || 300,
        height: HEIGHT,
        legend: { show: false },
        cursor: { drag: { x: true, y: false }, points: { size: 7 } },
        scales: { x: { time: false, distr: logX ? 3 : 1 }, y: { distr: logY ? 3 : 1 } },
        axes: [
          { stroke: theme.quiet, grid: { stroke: theme.rule, width: 1 }, ticks: { stroke: theme.rule }, size: 32, values: (_u, ticks) => ticks.map((v) => (v === null ? "" : short(v, 3))) },
          { stroke: theme.quiet, grid: { stroke: theme.rule, width: 1 }, ticks: { stroke: theme.rule }, size: 52, values: (_u, ticks) => ticks.map((v) => (v === null ? "" : short(v, 3))) },
        ],
        series: [
          {},
          ...drawn.map((one) => ({
            label: titles.value.get(one.key) ?? one.key,
            stroke: slotColor(theme, one.slot), width: 1.6, dash: slotDash(one.slot), spanGaps: true, points: { show: false },
          })),
        ],
        hooks: { draw: [(u) => drawMark(u, marked.current, theme.accent)] },
      },
      data,
      element,
    );
    plot.current = made;
    element.dataset["painted"] = `${name}:${drawn.length}`;
    let pressed = 0;
    const down = (e: MouseEvent): void => void (pressed = e.clientX);
    const up = (e: MouseEvent): void => {
      const left = made.cursor.left ?? -1;
      if (Math.abs(e.clientX - pressed) > 3 || left < 0) return;
      const at = stepAt(drawn.map((one) => one.curve!), made.posToVal(left, "x"), x);
      if (at !== null) chosenStep.current(at);
    };
    made.over.addEventListener("mousedown", down);
    made.over.addEventListener("mouseup", up);
    const watch = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT }));
    watch.observe(element);
    return () => {
      watch.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [lines, x, logX, logY, smooth, theme]);

  // With the axes: without, uPlot 1.6.32 forgets to lay out a plot that is new.
  useEffect(() => plot.current?.redraw(false, true), [step]);

  return (
    <figure class="curve">
      <figcaption>{name}<Values lines={lines} step={step} /></figcaption>
      <div class="plot" ref={frame} role="img" aria-label={`${name} of ${now.length} runs`} />
    </figure>
  );
}

function Values({ lines, step }: { lines: { key: string; slot: number; curve: WireCurve | undefined }[]; step: number | null }) {
  if (step === null || lines.length > 6) return null;
  return (
    <span class="values">
      {lines.map(({ key, slot, curve }) => {
        const value = curve?.value[indexAtOrBefore(curve.step, step)];
        return value === undefined ? null : <span key={key}><svg class="dot" viewBox="0 0 10 10" aria-hidden="true"><circle cx="5" cy="5" r="4.5" fill={slotColor(look.value, slot)} /></svg> {short(value)}</span>;
      })}
    </span>
  );
}

function drawMark(u: uPlot, places: (number | null)[], color: string): void {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.strokeStyle = color;
  ctx.lineWidth = 1.25 * devicePixelRatio;
  ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
  for (const at of new Set(places)) {
    if (at === null) continue;
    const x = u.valToPos(at, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

type X = "step" | "tokens" | "time";

function along(curve: WireCurve, x: X): (number | null)[] {
  if (x === "step") return curve.step;
  if (x === "tokens") return curve.tokens;
  return curve.wall_time.map((t) => (t - curve.wall_time[0]!) / 60);
}

function placeOf(curve: WireCurve, step: number, x: X): number | null {
  if (x === "step") return step;
  return along(curve, x)[indexAtOrBefore(curve.step, step)] ?? null;
}

/** The step of the record nearest to a place on the x axis. */
function stepAt(curves: readonly WireCurve[], at: number, x: X): number | null {
  let best: number | null = null;
  let least = Infinity;
  for (const curve of curves) {
    along(curve, x).forEach((place, i) => {
      const distance = place === null ? Infinity : Math.abs(place - at);
      if (distance < least) [best, least] = [curve.step[i]!, distance];
    });
  }
  return best;
}

function columnsOf(curve: WireCurve, x: X, logX: boolean, logY: boolean, smooth: number): uPlot.AlignedData {
  const places = along(curve, x);
  const numbers = curve.value.map(toNumber).map((v) => (Number.isFinite(v) && !(logY && v <= 0) ? v : null));
  const soft = smoothed(numbers, smooth);
  const rows = places.map((p, i) => [p, soft[i]!] as const).filter(([p]) => p !== null && !(logX && p <= 0));
  // After a resume, wall times and steps may go back; a plot goes forward.
  rows.sort((a, b) => a[0]! - b[0]!);
  return [rows.map(([p]) => p!), rows.map(([, v]) => v)];
}

function joined(tables: uPlot.AlignedData[]): uPlot.AlignedData {
  const full = tables.filter((table) => table[0].length);
  return full.length ? uPlot.join(full) : [[]];
}
