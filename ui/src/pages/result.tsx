/** One result: figure, values, tables, where it comes from, what went wrong. */

import { useSignal } from "@preact/signals";
import { decodeViews } from "../api/arrays.ts";
import { address, getResult, getResults } from "../api/client.ts";
import type { Described, Json, Run, WireResult } from "../api/types.ts";
import type { Pointed } from "../draw/hits.ts";
import { bytes, whole } from "../math/numbers.ts";
import { nearestEarlier } from "../math/steps.ts";
import { Choice, Link, Notice } from "../parts/controls.tsx";
import { JsonView } from "../parts/json.tsx";
import { Cell, imageOf, ViewPanel } from "../parts/panel.tsx";
import { StepSlider } from "../parts/slider.tsx";
import { byKey, chosen, runs, steps } from "../state/library.ts";
import { useLoad } from "../state/load.ts";
import { place, set } from "../state/place.ts";

export function ResultPage() {
  const run = byKey.value.get(place.value.run) ?? chosen.value[0]?.run ?? runs.value.at(-1)!;
  const { name: wanted, step, writer, seq } = place.value;
  // The steps of a run are loaded once the address names it.
  if (place.value.run !== run.key) queueMicrotask(() => set({ run: run.key }));
  const name = run.analyses.includes(wanted) ? wanted : (run.analyses[0] ?? "");
  const known = steps.value[run.key]?.[name]?.steps ?? [];
  const at = nearestEarlier(known, step ?? Infinity, false) ?? known[0] ?? null;
  const key = name && at !== null ? `${run.key} ${name} ${at} ${writer} ${seq}` : null;
  const { data, error } = useLoad<WireResult>(key, async (signal) => {
    if (writer && seq !== null) return getResult(run.key, writer, seq, signal);
    const found = await getResults(run.key, name, at!, signal);
    const newest = found.at(-1);
    if (!newest) throw new Error(`The run has no result of ${name} at step ${at}.`);
    return getResult(run.key, newest.writer, newest.seq, signal);
  });
  const index = known.indexOf(at ?? -1);
  return (
    <>
      <div class="bar">
        <h1>Result</h1>
        <Choice label="Run" value={run.key} set={(k) => set({ run: k, writer: "", seq: null })} options={runs.value.map((r) => [r.key, r.name || r.id] as const).reverse()} />
        <Choice label="Analysis" value={name} set={(n) => set({ name: n, writer: "", seq: null })} options={run.analyses.map((n) => [n, n] as const)} />
      </div>
      <div class="sticky"><StepSlider steps={known} index={index} unit="step" set={(i) => set({ step: known[i]!, writer: "", seq: null })} /></div>
      {!name && <Notice title="This run has no results"><p>It has metrics only. Replay an analysis on its checkpoints: <code>theseus-track replay {run.name} -a KEY</code></p></Notice>}
      {error && <Notice bad title="This result cannot be shown"><p>{error}</p></Notice>}
      {data && !error && <Result result={data} run={run} />}
    </>
  );
}

function Result({ result, run }: { result: WireResult; run: Run }) {
  const base = `runs/${run.key}/results/${encodeURIComponent(result.writer)}/${result.seq}`;
  const hasValues = Object.keys(result.shapes).length > 0;
  return (
    <>
      <div class="bar tight">
        <h2>{result.name}</h2>
        <span class="at">step {whole(result.step)}</span>
        {result.superseded && <span class="badge warn" title="The run was resumed below this step, or drawn again.">superseded</span>}
        <span class="grow" />
        {result.blobs.map((blob) => (
          <a key={blob.digest + blob.part} class="button" download href={address(`runs/${run.key}/files/${blob.digest}`, [["save", `${result.name}${blob.part && `.${blob.part}`}-step${result.step}.${blob.suffix}`]])}>
            {blob.part && `${blob.part} `}{blob.suffix.toUpperCase()}
          </a>
        ))}
        {hasValues && <a class="button" download href={address(`${base}/values.csv`)}>Values CSV</a>}
        {hasValues && <a class="button" download href={address(`${base}/values.npz`)}>Values npz</a>}
      </div>
      {result.error && <Failure result={result} />}
      <Parts result={result} run={run} />
      <div class="cells two">
        <Provenance result={result} />
        <Siblings result={result} run={run} />
      </div>
    </>
  );
}

function Failure({ result }: { result: WireResult }) {
  return (
    <section class="card failure" aria-label="Error">
      <h2>It failed{result.phase ? ` in ${result.phase}` : ""}</h2>
      <p>{result.error}</p>
      {result.traceback && <pre tabIndex={0}>{result.traceback}</pre>}
    </section>
  );
}

function Parts({ result, run }: { result: WireResult; run: Run }) {
  const pointed = useSignal<Pointed | null>(null);
  const views = decodeViews(result);
  const among = Object.values(views);
  const images = [...new Set(result.blobs.filter((b) => b.suffix === "png").map((b) => b.part))];
  return (
    <div class="cells wide">
      {Object.entries(views).map(([part, view]) => (
        <Cell key={`view ${part}`} heading={part || (Object.keys(result.views).length ? "Values" : "Values, as no helper drew them")}>
          <ViewPanel view={view} among={among.length > 1 ? [view] : among} pointed={pointed} label={`${result.name} ${part} at step ${result.step}`} painted={`result@${result.step}`} />
        </Cell>
      ))}
      {images.map((part) => (
        <Cell key={`image ${part}`} heading={part ? `Figure ${part}` : "Figure"}>
          <img class="figure" src={imageOf({ run: run.key, blobs: result.blobs }, part)!} alt={`${result.name} ${part} at step ${result.step}, as plot drew it`} loading="lazy" />
        </Cell>
      ))}
      {Object.entries(result.tables).map(([part, table]) => <Cell key={`table ${part}`} heading={part || "Table"}><JsonView value={table} /></Cell>)}
      {!among.length && !images.length && !Object.keys(result.tables).length && !result.error && <p class="nodata">There is no figure of it, and its values have more than two axes. Save them as npz.</p>}
    </div>
  );
}

const NAMES: [string, string][] = [
  ["source", "made"], ["checkpoint", "checkpoint"], ["probe_name", "probe"], ["probe", "probe hash"], ["measure", "analysis code"],
  ["draw", "plot code"], ["program", "program"], ["tokens", "tokens"], ["samples", "samples"], ["wall_time", "time of the step"],
  ["computed", "computed"], ["bytes", "size"], ["host", "host"], ["package", "version"], ["purpose", "written by"],
];

function Provenance({ result }: { result: WireResult }) {
  const rows = NAMES.filter(([key]) => result.provenance[key] !== null && result.provenance[key] !== undefined);
  return (
    <section class="card" aria-label="Where it comes from">
      <h2>Where it comes from</h2>
      <dl class="facts">
        {result.analysis && <div><dt>analysis</dt><dd>{result.analysis}</dd></div>}
        <div><dt>paths</dt><dd>{result.paths.map((path) => path || "the whole model").join(", ")}</dd></div>
        {Object.entries(result.shapes).map(([leaf, shape]) => <div key={leaf}><dt>value {leaf}</dt><dd>[{shape.join(", ")}]</dd></div>)}
        {rows.map(([key, name]) => <div key={key}><dt>{name}</dt><dd>{factOf(key, result.provenance[key]!)}</dd></div>)}
      </dl>
    </section>
  );
}

const HASHES = new Set(["probe", "measure", "draw", "program"]);

function factOf(key: string, value: Json) {
  if (key === "wall_time" || key === "computed") return new Date(Number(value) * 1000).toLocaleString();
  if (key === "bytes") return bytes(Number(value));
  if (typeof value === "number") return whole(value);
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return HASHES.has(key) ? <code title={text}>{text.slice(0, 12)}</code> : text;
}

function Siblings({ result, run }: { result: WireResult; run: Run }) {
  const here = (one: Described): boolean => one.writer === result.writer && one.seq === result.seq;
  return (
    <section class="card" aria-label="All results of this step">
      <h2>All results of this name and step</h2>
      <ul class="siblings">
        {result.siblings.map((one) => (
          <li key={`${one.writer} ${one.seq}`}>
            <Link to={{ page: "result", run: run.key, writer: one.writer, seq: one.seq }} aria-current={here(one) ? "true" : undefined}>{one.source}, {new Date(one.wall_time * 1000).toLocaleString()}</Link>
            {one.superseded && <span class="badge">superseded</span>}
            {one.error && <span class="badge warn">failed</span>}
          </li>
        ))}
      </ul>
    </section>
  );
}
