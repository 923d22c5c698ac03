/** One analysis over the chosen runs at the step: a panel each, and what they make together. */

import { useSignal, type Signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { Panel, View } from "../api/arrays.ts";
import { getPanels, type Panels } from "../api/client.ts";
import type { Pointed } from "../draw/hits.ts";
import { whole } from "../math/numbers.ts";
import { chosen, revisions, titles } from "../state/library.ts";
import { useLoad } from "../state/load.ts";
import { place } from "../state/place.ts";
import { DifferenceCell, StatisticCells } from "./combined.tsx";
import { Dot, Link } from "./controls.tsx";
import { JsonView } from "./json.tsx";
import { Cell, imageOf, ViewPanel } from "./panel.tsx";
import { Wipe } from "./wipe.tsx";

const MEANING: Record<string, string> = {
  probe: "They saw different batches, or it is unknown which.",
  shape: "Their values have different shapes.",
  paths: "They look at different layers.",
  measure: "The code of the analysis, or its config, was not the same.",
};

interface Props {
  name: string;
  when: [string, string | number][];
}

export function AnalysisRow({ name, when }: Props) {
  const pointed = useSignal<Pointed | null>(null);
  const keys = place.value.runs.map((one) => one.key).filter((key) => titles.value.has(key));
  const changed = keys.map((key) => revisions.value[key] ?? 0).join(".");
  const key = `${name} ${keys.join()} ${when.join()} ${changed}`;
  const { data, error } = useLoad<Panels>(key, (signal) => getPanels(name, keys, when, signal));
  const { statistic, difference, wipe } = place.value;
  const parts = useMemo(() => partsOf(data?.panels ?? []), [data]);
  const panels = data?.panels ?? [];
  const differ = data?.mismatches ?? [];
  return (
    <section class="row" aria-label={name}>
      <div class="bar tight">
        <h2>{name}</h2>
        {differ.map((what) => <span key={what} class="badge warn" title={MEANING[what]}>{what} differs</span>)}
        {keys[0] && <Link class="quiet" to={{ page: "film", run: keys[0], name, part: "", panel: null }}>all steps</Link>}
      </div>
      {error && <p class="bad" role="alert">{error}</p>}
      {!data && !error && <p class="nodata">Reading …</p>}
      {parts.map((part) => {
        const common = { name, part, panels, mismatches: differ, pointed };
        return (
          <div key={part}>
            {part && <h4 class="part">{part}</h4>}
            <div class="cells">
              {panels.map((panel) => <RunCell key={panel.run} {...common} panel={panel} />)}
              {difference && <DifferenceCell {...common} points={difference} />}
              {statistic && <StatisticCells {...common} />}
              {wipe && <WipeCell panels={panels} part={part} />}
            </div>
          </div>
        );
      })}
    </section>
  );
}

/** The parts that any panel has; at least the one without a name. */
function partsOf(panels: readonly Panel[]): string[] {
  const found = new Set<string>();
  for (const panel of panels) {
    for (const part of [...Object.keys(panel.views), ...Object.keys(panel.tables), ...panel.blobs.map((b) => b.part)]) found.add(part);
  }
  return found.size ? [...found] : panels.length ? [""] : [];
}

interface CellProps {
  name: string;
  part: string;
  panel: Panel;
  panels: readonly Panel[];
  pointed: Signal<Pointed | null>;
}

function RunCell({ name, part, panel, panels, pointed }: CellProps) {
  const slot = chosen.value.find((one) => one.key === panel.run)?.slot ?? 0;
  const title = titles.value.get(panel.run) ?? panel.run;
  const full = chosen.value.find((one) => one.key === panel.run)?.run.name ?? "";
  const to = panel.result ? { page: "result" as const, run: panel.run, name, step: panel.step, writer: panel.result.writer, seq: panel.result.seq, part: "" } : null;
  const at = panel.step === null ? null : (
    <span class={panel.exact ? "at" : "at earlier"} title={panel.exact ? "A record of this very step" : "The nearest earlier record"} data-step={panel.step}>
      step {whole(panel.step)}{panel.exact ? "" : " ←"}
    </span>
  );
  return (
    <Cell heading={<><Dot slot={slot} /> {to ? <Link to={to} title={`${full}: open this result`}>{title}</Link> : <span title={full}>{title}</span>}</>} note={at}>
      <Content {...{ name, part, panel, panels, pointed, title }} />
    </Cell>
  );
}

function Content({ name, part, panel, panels, pointed, title }: CellProps & { title: string }) {
  const among = useMemo(() => panels.flatMap((p): View[] => (p.views[part] ? [p.views[part]] : [])), [panels, part]);
  if (panel.missing) return <p class="nodata" data-missing><strong>no data</strong><br />{panel.missing}</p>;
  const view = panel.views[part];
  const failed = panel.error && <p class="nodata bad"><strong>This result failed.</strong><br />{panel.error}</p>;
  if (failed && !view) return failed;
  // What was measured before it failed can still be seen.
  if (view) return <>{failed}<ViewPanel view={view} among={among} pointed={pointed} label={`${name} ${part} of ${title}, step ${panel.step}`} painted={`${panel.run}@${panel.step}`} /></>;
  if (part in panel.tables) return <JsonView value={panel.tables[part]!} />;
  const image = imageOf(panel, part);
  if (image) return <img class="figure" src={image} alt={`${name} of ${title} at step ${panel.step}`} loading="lazy" />;
  return <p class="nodata"><strong>no data</strong><br />The run has no part {part || "without a name"} here.</p>;
}

function WipeCell({ panels, part }: { panels: readonly Panel[]; part: string }) {
  const found = panels.flatMap((panel) => {
    const image = imageOf(panel, part);
    return image ? [{ image, title: titles.value.get(panel.run) ?? panel.run }] : [];
  });
  const [a, b] = found;
  return (
    <Cell heading="A/B">
      {a && b ? <Wipe a={a.image} b={b.image} names={[a.title, b.title]} /> : <p class="nodata">The wipe needs the images of two runs.</p>}
    </Cell>
  );
}
