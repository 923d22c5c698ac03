/** Panels that are made of others: a difference, a mean, a deviation. */

import type { Signal } from "@preact/signals";
import type { Panel, View } from "../api/arrays.ts";
import { getPanels, type Panels } from "../api/client.ts";
import type { Json } from "../api/types.ts";
import type { Pointed } from "../draw/hits.ts";
import { combineJson, deviation, difference, mean } from "../math/tables.ts";
import { deviationView, differenceOf, isView, meanView, type Combined } from "../math/views.ts";
import { whole } from "../math/numbers.ts";
import { grouped } from "../math/table.ts";
import { chosen, titles } from "../state/library.ts";
import { useLoad } from "../state/load.ts";
import { place, set } from "../state/place.ts";
import type { Point } from "../state/url.ts";
import { Cell, ViewPanel } from "./panel.tsx";
import { JsonView } from "./json.tsx";

interface Props {
  name: string;
  part: string;
  panels: readonly Panel[];
  mismatches: readonly string[];
  pointed: Signal<Pointed | null>;
}

export function DifferenceCell({ name, part, panels, mismatches, pointed, points }: Props & { points: [Point, Point] }) {
  const a = usePoint(name, panels, points[0]);
  const b = usePoint(name, panels, points[1]);
  const heading = "Difference";
  const note = `${nameOf(points[0], a)} − ${nameOf(points[1], b)}`;
  const differ = mismatchesOf(a, b) ?? mismatches;
  if (blocked(name, differ)) return <Cell heading={heading} note={note}><Blocked name={name} what={differ} /></Cell>;
  if (!a || !b) return <Cell heading={heading} note={note}><p class="nodata">Choose two runs that have this result.</p></Cell>;
  const [viewA, viewB] = [a.views[part], b.views[part]];
  return (
    <Cell heading={heading} note={note}>
      {viewA && viewB ? (
        <Made made={differenceOf(viewA, viewB)} pointed={pointed} label={`${name} ${part} difference`} painted={`difference@${a.step}-${b.step}`} />
      ) : (
        <MadeTable tables={[a.tables[part], b.tables[part]]} join={difference} />
      )}
    </Cell>
  );
}

function usePoint(name: string, panels: readonly Panel[], point: Point): Panel | null {
  const here = panels.find((panel) => panel.run === point.run);
  const apart = point.step !== null || !here;
  const when: [string, number][] = [["step", point.step ?? Number.MAX_SAFE_INTEGER]];
  const { data } = useLoad<Panels>(apart ? `${name} ${point.run} ${point.step}` : null, (signal) => getPanels(name, [point.run], when, signal));
  return (apart ? data?.panels[0] : here) ?? null;
}

/** What differs between two results that were not asked for together. */
function mismatchesOf(a: Panel | null, b: Panel | null): string[] | null {
  const [one, other] = [a?.result, b?.result];
  if (!one || !other) return null;
  const features: [string, unknown, unknown][] = [
    ["probe", one.probe, other.probe], ["measure", one.measure, other.measure],
    ["shape", JSON.stringify(one.shapes), JSON.stringify(other.shapes)], ["paths", one.paths.join(), other.paths.join()],
  ];
  return features.filter(([, x, y]) => x !== y).map(([feature]) => feature);
}

function nameOf(point: Point, panel: Panel | null): string {
  const title = titles.value.get(point.run) ?? "a run that is not here";
  return panel?.step === null || panel?.step === undefined ? title : `${title} @ ${whole(panel.step)}`;
}

export function StatisticCells({ name, part, panels, mismatches, pointed }: Props) {
  const { statistic, over } = place.value;
  const groups = grouped(chosen.value.map((one) => one.run), over);
  return (
    <>
      {groups.map(([group, members]) => {
        const keys = new Set(members.map((run) => run.key));
        const found = panels.filter((panel) => keys.has(panel.run) && panel.step !== null && !panel.error);
        const title = `${statistic === "mean" ? "Mean" : "Standard deviation"}${group ? ` of ${group}` : ""}`;
        const steps = [...new Set(found.map((panel) => panel.step))];
        const note = `N = ${found.length}${steps.length > 1 ? `, steps ${steps.map((s) => whole(s!)).join(", ")}` : ""}`;
        return (
          <Cell key={group} heading={title} note={note}>
            {blocked(name, mismatches) ? <Blocked name={name} what={mismatches} /> : <Statistic {...{ name, part, pointed, group, found }} />}
          </Cell>
        );
      })}
    </>
  );
}

function Statistic({ name, part, found, pointed, group }: { name: string; part: string; found: readonly Panel[]; pointed: Signal<Pointed | null>; group: string }) {
  const { statistic } = place.value;
  const views = found.flatMap((panel): View[] => (panel.views[part] ? [panel.views[part]] : []));
  if (views.length) {
    const made = statistic === "mean" ? meanView(views) : deviationView(views);
    return <Made made={made} pointed={pointed} label={`${name} ${part} ${statistic} ${group}`} painted={`${statistic}@${views.length}`} />;
  }
  return <MadeTable tables={found.map((panel) => panel.tables[part])} join={statistic === "mean" ? mean : deviation} />;
}

function Made({ made, ...rest }: { made: Combined; pointed: Signal<Pointed | null>; label: string; painted: string }) {
  if (!isView(made)) return <p class="nodata">{made.obstacle}</p>;
  return <ViewPanel view={made} among={[made]} {...rest} />;
}

function MadeTable({ tables, join }: { tables: (Json | undefined)[]; join: (numbers: number[]) => number }) {
  const found = tables.filter((table): table is Json => table !== undefined);
  if (found.length < 2) return <p class="nodata">This needs the values of two results or more.</p>;
  return <JsonView value={combineJson(found, join)} />;
}

function blocked(name: string, what: readonly string[]): boolean {
  return what.length > 0 && !place.value.anyway.includes(name);
}

function Blocked({ name, what }: { name: string; what: readonly string[] }) {
  return (
    <div class="nodata">
      <p>These results differ in {what.join(", ")}, so a cell of one may not mean the same in the other.</p>
      <button type="button" onClick={() => set({ anyway: [...place.value.anyway, name] })}>Combine them anyway</button>
    </div>
  );
}
