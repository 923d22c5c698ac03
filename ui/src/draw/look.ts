/** The colours of drawings, light and dark, and those of the runs. */

export interface Look {
  dark: boolean;
  ink: string;
  quiet: string;
  axis: string;
  rule: string;
  paper: string;
  accent: string;
  /** Told apart by colour-blind readers (M. Okabe and K. Ito, 2008). */
  palette: readonly string[];
  nan: readonly [number, number, number];
  above: readonly [number, number, number];
  below: readonly [number, number, number];
}

export const LIGHT: Look = {
  dark: false,
  ink: "#1f2328", quiet: "#59636e", axis: "#8b949e", rule: "#e8eaed", paper: "#ffffff", accent: "#3451b2",
  palette: ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b57d00", "#56b4e9", "#7f7f7f", "#5b3fa0"],
  nan: [255, 0, 200], above: [61, 61, 61], below: [210, 210, 210],
};

export const DARK: Look = {
  dark: true,
  ink: "#e6e8eb", quiet: "#9ba3ad", axis: "#6b7480", rule: "#2a2f37", paper: "#181b20", accent: "#8ea8ff",
  palette: ["#4da6e0", "#f08a3c", "#2fc496", "#e29ac4", "#f2b632", "#8fd0f5", "#a3a3a3", "#a78bfa"],
  nan: [255, 0, 200], above: [217, 217, 217], below: [59, 63, 71],
};

/** The colour of a slot; beyond the palette it begins anew, with other dashes. */
export function slotColor(look: Look, slot: number): string {
  return look.palette[slot % look.palette.length]!;
}

export function slotDash(slot: number, size = 8): number[] {
  return [[], [6, 3], [2, 3], [8, 3, 2, 3]][Math.floor(slot / size) % 4]!;
}
