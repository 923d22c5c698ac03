/** Keys of the page that is shown; none while somebody writes. */

import { useLayoutEffect } from "preact/hooks";

export type Keys = Record<string, () => void>;

export function isWriting(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement | null;
  if (event.metaKey || event.ctrlKey || event.altKey) return true;
  if (target?.closest("dialog")) return true;
  if (target instanceof HTMLInputElement) return !["checkbox", "range", "radio"].includes(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

export function useKeys(keys: Keys): void {
  // Before the paint: a key pressed right after it must already count.
  useLayoutEffect(() => {
    const listen = (event: KeyboardEvent): void => {
      const act = isWriting(event) || event.defaultPrevented ? undefined : keys[event.key];
      // Space and Enter belong to the button or link that has the focus.
      const own = (event.target as HTMLElement | null)?.closest("button, a, summary, input[type=checkbox], input[type=range]");
      if (!act || (own && [" ", "Enter"].includes(event.key))) return;
      event.preventDefault();
      act();
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  });
}
