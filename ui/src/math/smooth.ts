/** Smooths a curve: an exponential mean without the pull of its first value. */

export function smoothed(values: readonly (number | null)[], weight: number): (number | null)[] {
  if (weight <= 0) return [...values];
  let sum = 0;
  let total = 0;
  return values.map((value) => {
    if (value === null || !Number.isFinite(value)) return value;
    sum = weight * sum + (1 - weight) * value;
    total = weight * total + (1 - weight);
    return sum / total;
  });
}
