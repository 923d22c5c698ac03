/** One analysis over all steps of a run: a strip of small frames, and step by value. */

import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { View } from "../api/arrays.ts";
import { address, getFilm, type Film } from "../api/client.ts";
import { pixelsOf, scaleOf, type Scale } from "../draw/colormap.ts";
import type { Pointed } from "../draw/hits.ts";
import { canvasOf } from "../draw/pen.ts";
import { short, whole } from "../math/numbers.ts";
import { indexAtOrBefore } from "../math/steps.ts";
import { Choice, Link, Notice, Segments } from "../parts/controls.tsx";
import { Cell, ViewPanel } from "../parts/panel.tsx";
import { save } from "../parts/save.ts";
import { StepSlider } from "../parts/slider.tsx";
import { byKey, chosen, revisions, runs } from "../state/library.ts";
import { useLoad } from "../state/load.ts";
import { place, set } from "../state/place.ts";
import { look } from "../state/theme.ts";

export function FilmPage() {
  const run = byKey.value.get(place.value.run) ?? chosen.value[0]?.run ?? runs.value.at(-1)!;
  const { name: wanted, part, panel } = place.value;
  const name = run.analyses.includes(wanted) ? wanted : (run.analyses[0] ?? "");
  const revision = revisions.value[run.key] ?? 0;
  const { data, error } = useLoad<Film>(name ? `${run.key} ${name} ${part} ${panel} ${revision}` : null, (signal) => getFilm(run.key, name, part, panel ?? 0, signal));
  return (
    <>
      <div class="bar">
        <h1>Film</h1>
        <Choice label="Run" value={run.key} set={(key) => set({ run: key })} options={runs.value.map((r) => [r.key, r.name || r.id] as const).reverse()} />
        <Choice label="Analysis" value={name} set={(n) => set({ name: n, part: "", panel: null })} options={run.analyses.map((n) => [n, n] as const)} />
        {data && data.panels.length > 1 && <Choice label="Panel" value={String(data.panel)} set={(p) => set({ panel: Number(p) || null })} options={data.panels.map((text, i) => [String(i), text] as const)} />}
        {name && <a class="button" href={address(`runs/${run.key}/steps.zip`, [["name", name]])} download>All steps (zip)</a>}
      </div>
      {!name && <Notice title="This run has no analyses"><p>Replay one on its checkpoints: <code>theseus-track replay {run.name} -a KEY</code></p></Notice>}
      {error && <Notice bad title="This film cannot be shown"><p>{error}</p></Notice>}
      {data && !error && (data.steps.length ? <Frames film={data} run={run.key} /> : <Empty film={data} run={run.key} />)}
    </>
  );
}

function Empty({ film, run }: { film: Film; run: string }) {
  return (
    <Notice title="No frames of this part">
      <p>{film.skipped[0]?.why ?? "There is no result yet."}</p>
      <Link to={{ page: "result", run, name: film.name, step: film.skipped[0]?.step ?? null, writer: "", seq: null }}>See one result</Link>
    </Notice>
  );
}

function Frames({ film, run }: { film: Film; run: string }) {
  const { step, robust } = place.value;
  const pointed = useSignal<Pointed | null>(null);
  const index = step === null ? film.steps.length - 1 : Math.max(0, indexAtOrBefore(film.steps, step));
  const frames = useMemo(() => film.steps.map((_, i) => frameView(film, i)), [film]);
  const scale = useMemo(() => scaleOf(frames[0]!, frames, { shared: true, robust }), [frames, robust]);
  const map = useMemo(() => mapView(film, place.value.row), [film, place.value.row]);
  const goTo = (i: number): void => set({ step: i === film.steps.length - 1 ? null : film.steps[i]! });
  const reduced = film.full.join() !== film.shape.join() ? `, means of ${film.full.join("×")} cells` : "";
  const [rows = 1] = film.shape;
  return (
    <>
      <div class="sticky">
        <StepSlider steps={film.steps} index={index} unit="step" set={goTo} />
        <div class="bar tight">
          <Segments label="Range" value={robust ? "robust" : "full"} options={[["full", "full range"], ["robust", "robust"]]} set={(v) => set({ robust: v === "robust" })} />
          <span class="quiet">{film.steps.length} steps of {film.shape.join("×")}{reduced}; {short(film.low)} to {short(film.high)}</span>
          {film.skipped.length > 0 && <span class="badge warn" title={film.skipped.map((s) => `step ${s.step}: ${s.why}`).join("\n")}>{film.skipped.length} steps left out</span>}
        </div>
      </div>
      <h2 class="unseen">Frames</h2>
      <div class="film">
        <div class="cells two">
          <Cell heading={<>Step {whole(film.steps[index]!)}</>} note={<Link to={{ page: "result", run, name: film.name, step: film.steps[index]!, writer: "", seq: null }}>open the result</Link>}>
            <ViewPanel view={frames[index]!} among={frames} pointed={pointed} label={`${film.name} at step ${film.steps[index]}`} painted={`film@${film.steps[index]}`} />
          </Cell>
          <Cell heading="Step × value" note={rows > 1 ? <RowChoice rows={rows} /> : null}>
            <ViewPanel view={map} among={[map]} pointed={pointed} label={`${film.name} by step`} painted={`map@${film.steps.length}`} />
          </Cell>
        </div>
        <Strip film={film} scale={scale} index={index} set={goTo} />
      </div>
    </>
  );
}

function RowChoice({ rows }: { rows: number }) {
  const { row } = place.value;
  const options: [string, string][] = [["", "mean of the rows"], ...Array.from({ length: rows }, (_, i): [string, string] => [String(i), `row ${i}`])];
  return <Choice label="Of" value={row === null ? "" : String(row)} set={(r) => set({ row: r === "" ? null : Number(r) })} options={options} />;
}

function frameView(film: Film, index: number): View {
  const [rows = 0, cols = 0] = film.shape;
  const data = film.frames.slice(index * rows * cols, (index + 1) * rows * cols);
  const { title: _, ...labels } = film.labels;
  const whole = film.full.join() === film.shape.join();
  const { vmin: _low, vmax: _high, ...scale } = film.scale;
  return { kind: "heatmap", arrays: { values: { data, shape: [rows, cols] } }, labels: { ...labels, annot: null }, ticks: whole && rows > 1 ? film.ticks : {}, scale: { ...scale, blocks: blocksOf(film) }, caption: "" };
}

function blocksOf(film: Film): number[] {
  return film.shape.map((size, axis) => Math.max(1, Math.round((film.full[axis] ?? size) / size)));
}

/** Steps down, cells across; of frames with several rows one of them, or their mean. */
function mapView(film: Film, row: number | null): View {
  const [rows = 0, cols = 0] = film.shape;
  const data = new Float32Array(film.steps.length * cols);
  for (let s = 0; s < film.steps.length; s++) {
    for (let c = 0; c < cols; c++) {
      let [sum, count] = [0, 0];
      const chosen = row === null ? Array.from({ length: rows }, (_, r) => r) : [Math.min(row, rows - 1)];
      for (const r of chosen) {
        const value = film.frames[(s * rows + r) * cols + c]!;
        if (!Number.isFinite(value)) continue;
        sum += value;
        count++;
      }
      // What is masked in some rows has the mean of the others.
      data[s * cols + c] = count ? sum / count : NaN;
    }
  }
  const x = film.labels["x"] ?? null;
  const [, block = 1] = blocksOf(film);
  const { vmin: _low, vmax: _high, ...scale } = film.scale;
  return { kind: "heatmap", arrays: { values: { data, shape: [film.steps.length, cols] } }, labels: { x, y: "step" }, ticks: { y: film.steps.map(String) }, scale: { ...scale, square: false, blocks: [1, block] }, caption: "" };
}

const GAP = 4;
const LABEL = 14;

function Strip({ film, scale, index, set: goTo }: { film: Film; scale: Scale; index: number; set: (i: number) => void }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = look.value;
  const [rows = 1, cols = 1] = film.shape;
  const w = 76;
  const h = Math.min(Math.max((w * rows) / cols, 18), 76);
  useEffect(() => {
    const element = canvas.current!;
    const draw = (): void => {
      const across = Math.max(1, Math.floor((element.parentElement!.clientWidth + GAP) / (w + GAP)));
      const down = Math.ceil(film.steps.length / across);
      const ratio = Math.min(devicePixelRatio || 1, 2);
      const [width, height] = [across * (w + GAP), down * (h + LABEL + GAP)];
      element.width = width * ratio;
      element.height = height * ratio;
      element.style.width = `${width}px`;
      element.style.height = `${height}px`;
      element.dataset["across"] = String(across);
      const ctx = element.getContext("2d")!;
      ctx.scale(ratio, ratio);
      ctx.imageSmoothingEnabled = cols > w;
      ctx.font = "10px system-ui, sans-serif";
      ctx.textBaseline = "middle";
      const window = { top: 0, bottom: rows, left: 0, right: cols };
      film.steps.forEach((step, i) => {
        const [x, y] = [(i % across) * (w + GAP), Math.floor(i / across) * (h + LABEL + GAP)];
        const pixels = pixelsOf({ data: film.frames, shape: film.shape }, i * rows * cols, cols, window, scale, theme);
        ctx.drawImage(canvasOf(pixels), x, y, w, h);
        ctx.fillStyle = i === index ? theme.accent : theme.quiet;
        ctx.fillText(String(step), x + 1, y + h + 8);
        if (i !== index) return;
        ctx.strokeStyle = theme.accent;
        ctx.lineWidth = 2;
        ctx.strokeRect(x + 1, y + 1, w - 2, h - 2);
      });
      element.dataset["painted"] = `strip:${film.steps.length}`;
    };
    draw();
    const watch = new ResizeObserver(draw);
    watch.observe(element.parentElement!);
    return () => watch.disconnect();
  }, [film, scale, index, theme]);
  const click = (event: MouseEvent): void => {
    const across = Number(canvas.current!.dataset["across"]);
    const i = Math.floor(event.offsetY / (h + LABEL + GAP)) * across + Math.floor(event.offsetX / (w + GAP));
    if (i < film.steps.length) goTo(i);
  };
  const png = (): void => canvas.current?.toBlob((blob) => blob && save(blob, `${film.name}-strip.png`));
  return (
    <section class="card" aria-label="All steps">
      <div class="bar tight"><h2>All steps</h2><button type="button" class="text" onClick={png}>PNG</button></div>
      <div class="strip"><canvas ref={canvas} role="img" aria-label={`${film.steps.length} frames; the slider chooses one`} onClick={click} /></div>
    </section>
  );
}
