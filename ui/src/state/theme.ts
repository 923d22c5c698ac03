/** Light or dark: as the reader's system says, or as the address does. */

import { computed, effect, signal } from "@preact/signals";
import { DARK, LIGHT } from "../draw/look.ts";
import { place } from "./place.ts";

const query = matchMedia("(prefers-color-scheme: dark)");
const system = signal(query.matches);
query.addEventListener("change", () => {
  system.value = query.matches;
});

export const dark = computed(() =>
  place.value.theme ? place.value.theme === "dark" : system.value,
);

export const look = computed(() => (dark.value ? DARK : LIGHT));

effect(() => {
  document.documentElement.dataset["theme"] = dark.value ? "dark" : "light";
});
