/** What is around every page: the way to the others, the theme, the help. */

import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { chosen, failure, indexing, live, loaded } from "../state/library.ts";
import { place, set } from "../state/place.ts";
import { dark } from "../state/theme.ts";
import { go } from "../state/place.ts";
import { Link } from "./controls.tsx";

export const helpShown = signal(false);

export function Shell({ children }: { children: ComponentChildren }) {
  const { page } = place.value;
  const count = chosen.value.length;
  return (
    <>
      <a class="skip" href="#main">Skip to the content</a>
      <header>
        <Link class="brand" to={{ page: "runs" }}>theseus<span>·track</span></Link>
        <nav aria-label="Pages">
          <Link to={{ page: "runs" }} aria-current={page === "runs" ? "page" : undefined}>Runs</Link>
          <Link to={{ page: "compare" }} aria-current={page === "compare" ? "page" : undefined}>
            Compare{count > 0 && <span class="count">{count}</span>}
          </Link>
          <Link to={filmOf()} aria-current={page === "film" ? "page" : undefined}>Film</Link>
          <Link to={{ page: "result" }} aria-current={page === "result" ? "page" : undefined}>Result</Link>
        </nav>
        <div class="tools">
          <Live />
          <button type="button" class="icon" title="Light or dark" aria-label={dark.value ? "Use the light theme" : "Use the dark theme"}
            onClick={() => set({ theme: dark.value ? "light" : "dark" })}>{dark.value ? "☀" : "☾"}</button>
          <button type="button" class="icon" title="Keys and help" aria-label="Help" onClick={() => (helpShown.value = true)}>?</button>
        </div>
      </header>
      {failure.value && loaded.value && <p class="banner" role="alert">{failure.value}</p>}
      <main id="main" tabIndex={-1}>{children}</main>
      <Help />
    </>
  );
}

function filmOf() {
  const { run } = place.value;
  return { page: "film" as const, run: run || chosen.value[0]?.key || "" };
}

function Live() {
  const { done, total } = indexing.value;
  const reading = done < total;
  const text = !live.value ? "not connected" : reading ? `reading ${done} of ${total}` : "live";
  return <span class={live.value ? "live on" : "live"} role="status">{text}</span>;
}

const KEYS: [string, string][] = [
  ["g then r, c, f, d", "go to Runs, Compare, Film, Result"],
  ["/", "filter the runs"],
  ["↑ ↓ or k j", "move in the table of runs"],
  ["x or Space", "choose the run"],
  ["Enter", "compare the chosen runs"],
  ["← →", "the step before, the step after"],
  ["Home, End", "the first step, the newest"],
  ["p", "play and stop"],
  ["s", "shared or own colour scale"],
  ["b", "robust range on or off"],
  ["e", "exact steps only, or the nearest earlier"],
  ["d", "difference of the first two runs"],
  ["m", "mean, deviation, neither"],
  ["Tab, then arrows", "read the cells of a drawing; Esc ends the zoom"],
  ["t", "light or dark"],
  ["?", "this help"],
];

function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  const shown = helpShown.value;
  useEffect(() => {
    if (shown) dialog.current?.showModal();
    else dialog.current?.close();
  }, [shown]);
  return (
    <dialog ref={dialog} aria-labelledby="help-title" onClose={() => (helpShown.value = false)}>
      <div class="help">
        <h2 id="help-title">Keys</h2>
        <dl>{KEYS.map(([key, does]) => <div key={key}><dt><kbd>{key}</kbd></dt><dd>{does}</dd></div>)}</dl>
        <h2>How to read it</h2>
        <p>A panel shows the nearest earlier record of its run, and always the step that the record is of. Drag over a heatmap to zoom, double-click to see all of it. Click a curve to go to its step. The address holds the whole view: copy it to share it.</p>
        <p>Filter words: <code>gpt</code>, <code>state:running</code>, <code>lr&lt;0.01</code>, <code>loss&lt;=2</code>, <code>tag:baseline</code>, <code>-word</code> for not.</p>
        <form method="dialog"><button type="submit" class="primary">Close</button></form>
      </div>
    </dialog>
  );
}

const PAGES = { r: "runs", c: "compare", f: "film", d: "result" } as const;
let waiting = false;

/** Keys that work on every page. Returns whether it was one. */
export function shellKeys(event: KeyboardEvent): boolean {
  if (waiting) {
    waiting = false;
    const page = PAGES[event.key as keyof typeof PAGES];
    if (page) go(page === "film" ? filmOf() : { page });
    return Boolean(page);
  }
  if (event.key === "g") waiting = true;
  else if (event.key === "?") helpShown.value = true;
  else if (event.key === "t") set({ theme: dark.value ? "light" : "dark" });
  else return false;
  return true;
}
