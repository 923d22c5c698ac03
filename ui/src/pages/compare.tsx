/** Curves above, one step for everything, and analysis by run below. */

import { useMemo } from "preact/hooks";
import { closest, indexAtOrBefore, unionOf } from "../math/steps.ts";
import { AnalysisRow } from "../parts/analysis_row.tsx";
import { Choice, Dot, Link, Menu, Notice, Segments, Toggle } from "../parts/controls.tsx";
import { CurveBoard } from "../parts/curves.tsx";
import { StepSlider } from "../parts/slider.tsx";
import { useKeys } from "../state/keys.ts";
import { chosen, steps, titles } from "../state/library.ts";
import { place, set } from "../state/place.ts";
import { withoutRun } from "../state/selection.ts";
import { titleOf } from "./runs.tsx";
import { flat } from "../math/table.ts";
import type { Point } from "../state/url.ts";

const START = 4;
type When = [string, string | number][];

export function ComparePage() {
  const { names, align, step, until, exact } = place.value;
  const now = chosen.value;
  const known = useMemo(() => [...new Set(now.flatMap((one) => one.run.analyses))].sort(), [now]);
  const picked = names.filter((name) => known.includes(name));
  const shown = picked.length ? picked : known.slice(0, START);
  const marks = useMemo(
    () => unionOf(now.flatMap((one) => shown.map((name) => marksOf(one.key, name, align)))),
    [now, shown.join(), align, steps.value],
  );
  const index = step === null ? marks.length - 1 : Math.max(0, indexAtOrBefore(marks, step));
  const current = marks[index] ?? null;
  useCompareKeys(now.map((one) => one.key));

  if (!now.length) {
    return (
      <Notice title="No run is chosen">
        <p>Choose one or more in the table; they keep their colours here.</p>
        <Link class="primary" to={{ page: "runs" }}>To the runs</Link>
      </Notice>
    );
  }
  const when: When | null =
    align === "metric" ? (until ? [["metric", until.metric], ["below", until.below]] : null)
    : current === null ? null : [[align === "tokens" ? "tokens" : "step", current]];
  // At the newest the address keeps no step, so that the page follows the training.
  const goTo = (i: number): void => set({ step: i === marks.length - 1 ? null : (marks[i] ?? null) });
  return (
    <>
      <h1 class="unseen">Compare</h1>
      <Chips />
      <CurveBoard step={align === "step" ? current : null} setStep={(s) => set({ align: "step", step: closest(align === "step" ? marks : [s], s) })} />
      <div class="sticky">
        {align === "metric" ? <Until /> : <StepSlider steps={marks} index={index} unit={align} set={goTo} />}
        <Options known={known} shown={shown} />
      </div>
      {known.length === 0 && <Notice title="These runs have no analyses"><p>Give your evaluation step some: <code>instrument(eval_step, [MyAnalysis])</code>, or replay one on the checkpoints: <code>theseus-track replay RUN -a KEY</code>.</p></Notice>}
      {when && shown.map((name) => <AnalysisRow key={name} name={name} when={exact ? [...when, ["exact", 1]] : when} />)}
    </>
  );
}

function marksOf(key: string, name: string, align: string): number[] {
  const columns = steps.value[key]?.[name];
  if (!columns) return [];
  return align === "tokens" ? columns.tokens.filter((t): t is number => t !== null) : columns.steps;
}

function Chips() {
  return (
    <ul class="chips" aria-label="Chosen runs">
      {chosen.value.map((one) => (
        <li key={one.key}>
          <Dot slot={one.slot} /> <span title={one.run.name}>{titles.value.get(one.key)}</span>
          <span class={`state ${one.run.state}`}>{one.run.state}</span>
          <button type="button" class="text" aria-label={`Leave out ${one.run.name}`} onClick={() => set({ runs: withoutRun(place.value.runs, one.key) })}>×</button>
        </li>
      ))}
      <li class="add"><Link to={{ page: "runs" }}>choose runs</Link></li>
    </ul>
  );
}

function Until() {
  const { until } = place.value;
  const metrics = [...new Set(chosen.value.flatMap((one) => one.run.metrics))].sort();
  const metric = until?.metric ?? metrics.find((m) => /loss/.test(m)) ?? metrics[0] ?? "";
  return (
    <div class="slider">
      <Choice label="First step where" value={metric} options={metrics.map((m) => [m, m] as const)} set={(m) => set({ until: { metric: m, below: until?.below ?? 1 } })} />
      <label class="choice"><span>falls below</span>
        <input type="number" step="any" value={until?.below ?? ""} placeholder="a number" onChange={(e) => e.currentTarget.value && set({ until: { metric, below: Number(e.currentTarget.value) } })} />
      </label>
    </div>
  );
}

function Options({ known, shown }: { known: string[]; shown: string[] }) {
  const { align, exact, shared, robust, statistic, over, difference, wipe, zoom } = place.value;
  const now = chosen.value;
  const configs = [...new Set(now.flatMap((one) => Object.keys(flat(one.run.config))))].sort();
  const overs = ["", "group", "project", ...configs.map((c) => `config:${c}`)];
  return (
    <div class="bar tight options">
      <Menu label="Analyses" options={known} chosen={shown} set={(n) => set({ names: n })} />
      <Choice label="Align by" value={align} set={(a) => set({ align: a, step: null })} options={[["step", "step"], ["tokens", "tokens"], ["metric", "metric"]]} />
      <Toggle on={exact} set={(on) => set({ exact: on })} title="Show only records of this very step, not the nearest earlier">exact only</Toggle>
      <Segments label="Scale" value={shared ? "shared" : "own"} options={[["shared", "shared scale"], ["own", "own"]]} set={(v) => set({ shared: v === "shared" })} />
      <Toggle on={robust} set={(on) => set({ robust: on })} title="Colours from the 2nd to the 98th percentile">robust</Toggle>
      <Choice label="Statistic" value={statistic} set={(s) => set({ statistic: s })} options={[["", "none"], ["mean", "mean"], ["std", "deviation"]]} />
      {statistic && <Choice label="over" value={over} set={(o) => set({ over: o })} options={overs.map((o) => [o, o ? titleOf(o) : "all chosen"] as const)} />}
      <Toggle on={Boolean(difference)} set={(on) => set({ difference: on ? firstTwo() : null })}>difference</Toggle>
      <Toggle on={wipe} set={(on) => set({ wipe: on })} title="Lay the images of the first two runs over each other">A/B images</Toggle>
      {zoom && <button type="button" onClick={() => set({ zoom: null })}>End the zoom</button>}
      {difference && <DifferenceOptions points={difference} />}
    </div>
  );
}

function firstTwo(): [Point, Point] | null {
  const [a, b] = chosen.value;
  if (!a) return null;
  // One run alone: its newest step against its first.
  return [{ run: a.key, step: null }, b ? { run: b.key, step: null } : { run: a.key, step: firstStep(a.key) }];
}

function firstStep(key: string): number {
  return unionOf(Object.values(steps.value[key] ?? {}).map((columns) => columns.steps))[0] ?? 0;
}

function DifferenceOptions({ points }: { points: [Point, Point] }) {
  const change = (which: 0 | 1, patch: Partial<Point>): void => {
    const next: [Point, Point] = [{ ...points[0] }, { ...points[1] }];
    Object.assign(next[which], patch);
    set({ difference: next });
  };
  return (
    <div class="points" role="group" aria-label="Difference of">
      {([0, 1] as const).map((which) => {
        const point = points[which];
        const own = unionOf(Object.values(steps.value[point.run] ?? {}).map((c) => c.steps));
        return (
          <span key={which}>
            {which === 1 && <span class="minus" aria-hidden="true">−</span>}
            <Choice label={which ? "minus" : "of"} value={point.run} set={(run) => change(which, { run })} options={chosen.value.map((one) => [one.key, titles.value.get(one.key) ?? one.key] as const)} />
            <Choice label="at" value={point.step === null ? "" : String(point.step)} set={(s) => change(which, { step: s === "" ? null : Number(s) })} options={[["", "the slider's step"], ...own.map((s) => [String(s), `step ${s}`] as const)]} />
          </span>
        );
      })}
    </div>
  );
}

function useCompareKeys(keys: string[]): void {
  const { shared, robust, exact, difference, statistic } = place.value;
  useKeys({
    s: () => set({ shared: !shared }),
    b: () => set({ robust: !robust }),
    e: () => set({ exact: !exact }),
    d: () => set({ difference: difference || !keys.length ? null : firstTwo() }),
    m: () => set({ statistic: statistic === "" ? "mean" : statistic === "mean" ? "std" : "" }),
    Escape: () => set({ zoom: null }),
  });
}
