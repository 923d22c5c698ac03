/** The small controls that all pages use. */

import type { ComponentChildren } from "preact";
import { slotColor } from "../draw/look.ts";
import { go, hrefOf } from "../state/place.ts";
import { look } from "../state/theme.ts";
import type { Place } from "../state/url.ts";

interface LinkProps {
  to: Partial<Place>;
  children: ComponentChildren;
  class?: string;
  title?: string;
  "aria-current"?: "page" | "true" | undefined;
}

/** A link to another view: a click stays in the page, a middle click opens a tab. */
export function Link(
  { to, children, ...rest }: LinkProps,
) {
  const follow = (event: MouseEvent): void => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    go(to);
  };
  return <a {...rest} href={hrefOf(to)} onClick={follow}>{children}</a>;
}

export function Toggle(
  { on, set, children, title }: { on: boolean; set: (on: boolean) => void; children: ComponentChildren; title?: string },
) {
  return (
    <label class="toggle" title={title}>
      <input type="checkbox" checked={on} onChange={(e) => set(e.currentTarget.checked)} />
      <span>{children}</span>
    </label>
  );
}

export function Choice<T extends string>(
  { label, value, options, set }: { label: string; value: T; options: readonly (readonly [T, string])[]; set: (value: T) => void },
) {
  return (
    <label class="choice">
      <span>{label}</span>
      <select value={value} onChange={(e) => set(e.currentTarget.value as T)}>
        {options.map(([id, text]) => <option key={id} value={id}>{text}</option>)}
      </select>
    </label>
  );
}

/** One of a few, all of them seen. */
export function Segments<T extends string>(
  { label, value, options, set }: { label: string; value: T; options: readonly (readonly [T, string])[]; set: (value: T) => void },
) {
  return (
    <div class="segments" role="group" aria-label={label}>
      {options.map(([id, text]) => (
        <button key={id} type="button" aria-pressed={id === value} onClick={() => set(id)}>{text}</button>
      ))}
    </div>
  );
}

/** Several of a list, behind a button. */
export function Menu(
  { label, options, chosen, set }: { label: string; options: readonly string[]; chosen: readonly string[]; set: (chosen: string[]) => void },
) {
  const flip = (name: string): void =>
    set(chosen.includes(name) ? chosen.filter((n) => n !== name) : [...chosen, name]);
  return (
    <details class="menu">
      <summary>{label}</summary>
      <div class="menu-list">
        {options.map((name) => (
          <Toggle key={name} on={chosen.includes(name)} set={() => flip(name)}>{name}</Toggle>
        ))}
        {options.length === 0 && <p class="quiet">None yet.</p>}
      </div>
    </details>
  );
}

/** The colour of a run, as a dot. */
export function Dot({ slot }: { slot: number }) {
  return (
    <svg class="dot" viewBox="0 0 10 10" aria-hidden="true">
      <circle cx="5" cy="5" r="4.5" fill={slotColor(look.value, slot)} />
      {slot >= 8 && <circle cx="5" cy="5" r="1.8" fill={look.value.paper} />}
    </svg>
  );
}

export function Notice({ title, children, bad }: { title: string; children?: ComponentChildren; bad?: boolean }) {
  return (
    <div class={bad ? "notice bad" : "notice"} role={bad ? "alert" : "status"}>
      <h2>{title}</h2>
      {children}
    </div>
  );
}
