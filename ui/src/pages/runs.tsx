/** The table of all runs: filter, sort, group, choose, compare configs. */

import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Run } from "../api/types.ts";
import { middleCut } from "../math/names.ts";
import { ago, short, whole } from "../math/numbers.ts";
import { flat, cell, grouped, matches, sorted } from "../math/table.ts";
import { Choice, Dot, Link, Menu, Notice } from "../parts/controls.tsx";
import { ConfigDiff } from "../parts/config_diff.tsx";
import { useKeys } from "../state/keys.ts";
import { chosen, runs } from "../state/library.ts";
import { go, place, set } from "../state/place.ts";
import { toggled, withoutRun, withRun } from "../state/selection.ts";

const FIRST = 200;
const cursor = signal(-1);

export function RunsPage() {
  const { filter, sort, group, columns } = place.value;
  const all = runs.value;
  const [limit, setLimit] = useState(FIRST);
  const search = useRef<HTMLInputElement>(null);
  const shown = useMemo(
    () => sorted(all.filter((run) => matches(run, filter)), sort),
    [all, filter, sort],
  );
  const groups = useMemo(() => grouped(shown, group), [shown, group]);
  const flatList = groups.flatMap(([, members]) => members);
  const known = useMemo(() => knownColumns(all), [all]);
  const extra = columns.length ? columns.filter((c) => known.includes(c)) : startColumns(all);

  useKeys({
    "/": () => search.current?.focus(),
    ArrowDown: () => move(1, flatList.length),
    ArrowUp: () => move(-1, flatList.length),
    j: () => move(1, flatList.length),
    k: () => move(-1, flatList.length),
    x: () => flip(flatList[cursor.value]),
    " ": () => flip(flatList[cursor.value]),
    Enter: () => compareFrom(flatList[cursor.value]),
  });

  return (
    <>
      <div class="bar">
        <h1>Runs</h1>
        <input ref={search} type="search" aria-label="Filter the runs" placeholder="Filter: gpt state:running lr<0.01" value={filter} onInput={(e) => set({ filter: e.currentTarget.value })} />
        <Choice label="Group" value={group} set={(g) => set({ group: g })} options={[["", "no"], ...["project", "group", "state", "tags", ...known.filter((c) => c.startsWith("config:"))].map((c) => [c, titleOf(c)] as const)]} />
        <Menu label="Columns" options={known} chosen={extra} set={(c) => set({ columns: c })} />
        <span class="quiet" role="status">{shown.length === all.length ? `${whole(all.length)} runs` : `${whole(shown.length)} of ${whole(all.length)}`}</span>
      </div>
      {shown.length === 0 ? (
        <Notice title="No run has all these words">
          <p>Words are looked for in names, projects, tags and analyses; <code>state:running</code> and <code>loss&lt;1</code> ask for values.</p>
          <button type="button" onClick={() => set({ filter: "" })}>Show all runs</button>
        </Notice>
      ) : (
        <div class="scroll" tabIndex={0} role="region" aria-label="Table of runs">
          <table class="runs">
            <Head columns={extra} members={shown} />
            {groups.map(([name, members]) => (
              <Group key={name} name={group ? `${titleOf(group)}: ${name}` : ""} members={members.slice(0, limit)} columns={extra} from={flatList.indexOf(members[0]!)} count={members.length} />
            ))}
          </table>
        </div>
      )}
      {groups.some(([, members]) => members.length > limit) && <button type="button" onClick={() => setLimit(Infinity)}>Show all of them</button>}
      <Chosen />
    </>
  );
}

function move(by: number, count: number): void {
  cursor.value = Math.min(Math.max(cursor.value + by, 0), count - 1);
}

function flip(run: Run | undefined): void {
  if (run) set({ runs: toggled(place.value.runs, run.key) });
}

function compareFrom(run: Run | undefined): void {
  const { runs: now } = place.value;
  go({ page: "compare", runs: now.length || !run ? now : withRun(now, run.key) });
}

const FIXED = ["name", "state", "last_step"];

function knownColumns(all: readonly Run[]): string[] {
  const metrics = new Set(all.flatMap((run) => Object.keys(run.last)));
  const config = new Set(all.flatMap((run) => Object.keys(flat(run.config))));
  return [
    "project", "created", "analyses", "tags", "group", "id",
    ...[...metrics].sort().map((m) => `metric:${m}`),
    ...[...config].sort().map((c) => `config:${c}`),
  ];
}

/** The columns of the start: what runs differ in, and their first metrics. */
function startColumns(all: readonly Run[]): string[] {
  const known = knownColumns(all);
  const differs = (column: string): boolean => {
    const first = all[0] && cell(all[0], column);
    return all.some((run) => cell(run, column) !== first);
  };
  const metrics = known.filter((c) => c.startsWith("metric:"));
  const losses = [...metrics].sort((a, b) => Number(/loss/.test(b)) - Number(/loss/.test(a)));
  const config = known.filter((c) => c.startsWith("config:")).filter(differs);
  return ["project", "created", "analyses", "tags", ...losses.slice(0, 2), ...config.slice(0, 3)].filter((c) => !["project", "tags"].includes(c) || differs(c));
}

export function titleOf(column: string): string {
  const plain = column.replace(/^(metric|config):/, "");
  return plain === "last_step" ? "step" : plain;
}

function Head({ columns, members }: { columns: string[]; members: readonly Run[] }) {
  const { sort, runs: now } = place.value;
  const every = members.length > 0 && members.every((run) => now.some((c) => c.key === run.key));
  const flipAll = (): void => {
    const keys = members.slice(0, 64).map((run) => run.key);
    set({ runs: every ? keys.reduce(withoutRun, now) : keys.reduce(withRun, now) });
  };
  return (
    <thead>
      <tr>
        <th scope="col" class="pick"><input type="checkbox" aria-label="Choose all that are shown" checked={every} onChange={flipAll} /></th>
        {[...FIXED, ...columns].map((column) => {
          const active = sort.replace(/^-/, "") === column;
          const down = sort.startsWith("-");
          return (
            <th key={column} scope="col" class={kindOf(column)} aria-sort={active ? (down ? "descending" : "ascending") : undefined}>
              <button type="button" title={column} onClick={() => set({ sort: active && !down ? `-${column}` : column })}>
                {titleOf(column)}<span aria-hidden="true">{active ? (down ? " ↓" : " ↑") : ""}</span>
              </button>
            </th>
          );
        })}
      </tr>
    </thead>
  );
}

function kindOf(column: string): string {
  return column === "last_step" || column === "analyses" || column.startsWith("metric:") ? "number" : "";
}

function Group({ name, members, columns, from, count }: { name: string; members: Run[]; columns: string[]; from: number; count: number }) {
  return (
    <tbody>
      {name && <tr class="group"><th scope="rowgroup" colSpan={columns.length + 4}>{name} <span class="quiet">{count}</span></th></tr>}
      {members.map((run, i) => <Row key={run.key} run={run} columns={columns} at={from + i} />)}
    </tbody>
  );
}

function Row({ run, columns, at }: { run: Run; columns: string[]; at: number }) {
  const one = place.value.runs.find((c) => c.key === run.key);
  const here = cursor.value === at;
  const row = useRef<HTMLTableRowElement>(null);
  useEffect(() => {
    if (here) row.current?.scrollIntoView({ block: "nearest" });
  }, [here]);
  return (
    <tr ref={row} class={`${one ? "chosen" : ""} ${here ? "here" : ""}`} data-run={run.key}>
      <td class="pick">
        <input type="checkbox" aria-label={`Choose ${run.name || run.id}`} checked={Boolean(one)} onChange={() => flip(run)} />
      </td>
      <td class="name">
        <Link to={{ page: "compare", runs: one ? place.value.runs : withRun(place.value.runs, run.key) }} title={`${run.name} (${run.id})`}>{middleCut(run.name || run.id, 44)}</Link>
        {one && <Dot slot={one.slot} />}
        {Boolean(run.damaged) && <span class="badge warn" title="Some of its records cannot be read; `theseus-track verify` says which.">damaged</span>}
      </td>
      <td><span class={`state ${run.state}`}>{run.state}</span></td>
      <td class="number">{run.last_step === null ? "" : whole(run.last_step)}</td>
      {columns.map((column) => <td key={column} class={kindOf(column)}>{written(run, column)}</td>)}
    </tr>
  );
}

function written(run: Run, column: string) {
  if (column === "created") {
    const date = new Date(run.created * 1000);
    return <time dateTime={date.toISOString()} title={date.toLocaleString()}>{ago(Date.now() / 1000 - run.created)}</time>;
  }
  if (column === "tags") return run.tags.map((tag) => <span key={tag} class="tag">{tag}</span>);
  if (column === "analyses") return <span title={run.analyses.join(", ")}>{run.analyses.length}</span>;
  const value = cell(run, column);
  return typeof value === "number" ? short(value) : <span class="cut" title={value ?? ""}>{value}</span>;
}

function Chosen() {
  const now = chosen.value;
  if (!now.length) return <p class="quiet">Choose runs with their boxes, or with the arrow keys and x; then compare them.</p>;
  return (
    <section class="card" aria-label="Chosen runs">
      <div class="bar">
        <h2>{now.length} chosen</h2>
        <Link class="primary" to={{ page: "compare" }}>Compare</Link>
        <button type="button" onClick={() => set({ runs: [] })}>Choose none</button>
      </div>
      <ConfigDiff />
    </section>
  );
}
