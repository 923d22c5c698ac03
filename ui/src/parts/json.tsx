/** A JSON value: a table where it is one, a tree else. */

import type { Json } from "../api/types.ts";
import { short } from "../math/numbers.ts";

const MOST = 200;

export function JsonView({ value }: { value: Json }) {
  const rows = tableOf(value);
  return rows ? <JsonTable {...rows} /> : <div class="tree"><Node value={value} open /></div>;
}

function tableOf(value: Json): { head: string[]; body: Json[][] } | null {
  if (value && typeof value === "object" && !Array.isArray(value)) {
    const entries = Object.entries(value);
    const flat = entries.length > 0 && entries.every(([, v]) => v === null || typeof v !== "object");
    return flat ? { head: ["name", "value"], body: entries } : null;
  }
  if (!Array.isArray(value) || !value.length) return null;
  const records = value.every((row) => row && typeof row === "object" && !Array.isArray(row) && Object.values(row).every((v) => v === null || typeof v !== "object"));
  if (!records) return null;
  const head = [...new Set(value.flatMap((row) => Object.keys(row as object)))];
  return { head, body: value.map((row) => head.map((key) => (row as Record<string, Json>)[key] ?? null)) };
}

function JsonTable({ head, body }: { head: string[]; body: Json[][] }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Table of values">
      <table class="json">
        <thead><tr>{head.map((name) => <th key={name} scope="col">{name}</th>)}</tr></thead>
        <tbody>{body.slice(0, MOST).map((row, i) => <tr key={i}>{row.map((v, k) => <td key={k} class={typeof v === "number" ? "number" : ""} title={String(v)}>{plain(v)}</td>)}</tr>)}</tbody>
      </table>
      {body.length > MOST && <p class="quiet">{body.length - MOST} more rows are in the file.</p>}
    </div>
  );
}

function plain(value: Json): string {
  return typeof value === "number" ? short(value, 6) : value === null ? "null" : String(value);
}

function Node({ name, value, open }: { name?: string; value: Json; open?: boolean }) {
  const label = name === undefined ? null : <span class="key">{name}: </span>;
  if (value === null || typeof value !== "object") return <div>{label}<span class="mono">{plain(value)}</span></div>;
  const entries = Object.entries(value);
  const kind = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`;
  return (
    <details open={open ?? false}>
      <summary>{label}<span class="quiet">{kind}</span></summary>
      {entries.slice(0, MOST).map(([key, child]) => <Node key={key} name={key} value={child as Json} />)}
      {entries.length > MOST && <p class="quiet">{entries.length - MOST} more are in the file.</p>}
    </details>
  );
}
