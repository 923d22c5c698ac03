/** The configs of the chosen runs side by side. */

import { configDiff } from "../math/table.ts";
import { chosen, titles } from "../state/library.ts";
import { place, set } from "../state/place.ts";
import { Dot, Toggle } from "./controls.tsx";

export function ConfigDiff() {
  const now = chosen.value;
  const rows = configDiff(now.map((one) => one.run));
  const only = place.value.onlyDifferent && now.length > 1;
  const shown = only ? rows.filter((row) => row.differs) : rows;
  return (
    <div class="diff">
      <div class="bar">
        <h3>Config</h3>
        {now.length > 1 && <Toggle on={only} set={(on) => set({ onlyDifferent: on })}>only what differs</Toggle>}
      </div>
      {shown.length === 0 ? (
        <p class="quiet">{rows.length ? "Their configs are the same." : "None of them has a config; give one with open_run(config=...)."}</p>
      ) : (
        <div class="scroll" tabIndex={0} role="region" aria-label="Configs">
          <table>
            <thead>
              <tr>
                <th scope="col">key</th>
                {now.map((one) => <th key={one.key} scope="col" title={one.run.name}><Dot slot={one.slot} /> {titles.value.get(one.key)}</th>)}
              </tr>
            </thead>
            <tbody>
              {shown.map((row) => (
                <tr key={row.key} class={row.differs ? "differs" : ""}>
                  <th scope="row">{row.key}</th>
                  {row.values.map((value, i) => <td key={i} class="mono">{value ?? <span class="quiet">not set</span>}</td>)}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  );
}
