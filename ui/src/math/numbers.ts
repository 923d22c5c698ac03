/** Numbers as a person reads them. */

const WHOLE = new Intl.NumberFormat("en");

/** At most so many significant digits; very large and small ones as 1.2e-5. */
export function short(value: number | string | null | undefined, digits = 4): string {
  if (value === null || value === undefined) return "";
  const number = Number(value);
  if (Number.isNaN(number)) return "NaN";
  if (!Number.isFinite(number)) return number > 0 ? "∞" : "−∞";
  const size = Math.abs(number);
  if (size !== 0 && (size < 1e-4 || size >= 1e6)) {
    return number.toExponential(Math.max(0, digits - 2)).replace(/\.?0+e/, "e").replace("e+", "e").replace("-", "−");
  }
  return String(Number(number.toPrecision(digits))).replace("-", "−");
}

/** An integer with its thousands apart. */
export function whole(value: number): string {
  return WHOLE.format(value);
}

export function bytes(count: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  let size = count;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit++;
  }
  return `${short(size, 3)} ${units[unit]}`;
}

/** How long ago, in one unit. */
export function ago(seconds: number): string {
  if (seconds < 60) return "just now";
  const units: [number, string][] = [[86400 * 365, "y"], [86400, "d"], [3600, "h"], [60, "min"]];
  const [size, name] = units.find(([size]) => seconds >= size)!;
  return `${Math.floor(seconds / size)} ${name} ago`;
}

/** Evenly spaced round numbers within a range, about so many. */
export function niceTicks(low: number, high: number, count: number): number[] {
  if (!(high > low) || count < 1) return [low];
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999)!;
  const ticks: number[] = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) {
    ticks.push(Number((k * step).toPrecision(12)));
  }
  return ticks;
}
