/** Where the reader is: one signal, kept in the address bar. */

import { signal } from "@preact/signals";
import { format, parse, type Place } from "./url.ts";

export const place = signal<Place>(parse(location.search));

/** Change the view in place: no new entry in the browser's history. */
export function set(patch: Partial<Place>): void {
  place.value = { ...place.value, ...patch };
  history.replaceState(null, "", hrefOf({}));
}

/** Go somewhere else: the browser's back button returns here. */
export function go(patch: Partial<Place>): void {
  history.pushState(null, "", hrefOf(patch));
  place.value = { ...place.value, ...patch };
  scrollTo(0, 0);
}

/** The address of the view with some changes. */
export function hrefOf(patch: Partial<Place>): string {
  return location.pathname + format({ ...place.value, ...patch });
}

addEventListener("popstate", () => {
  place.value = parse(location.search);
});
