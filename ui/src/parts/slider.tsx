/** The one slider of steps: drag, arrow keys, play. */

import { useEffect, useState } from "preact/hooks";
import { whole } from "../math/numbers.ts";
import { useKeys } from "../state/keys.ts";

interface Props {
  steps: readonly number[];
  index: number;
  unit: string;
  set: (index: number) => void;
}

const EACH = 500;

export function StepSlider({ steps, index, unit, set }: Props) {
  const [playing, setPlaying] = useState(false);
  const last = steps.length - 1;
  const to = (next: number): void => set(Math.min(Math.max(next, 0), last));
  useEffect(() => {
    if (!playing) return undefined;
    const timer = setInterval(() => (index >= last ? setPlaying(false) : to(index + 1)), EACH);
    return () => clearInterval(timer);
  }, [playing, index, last]);
  const play = (): void => {
    if (!playing && index >= last) to(0);
    setPlaying(!playing);
  };
  useKeys({
    ArrowLeft: () => to(index - 1),
    ArrowRight: () => to(index + 1),
    Home: () => to(0),
    End: () => to(last),
    p: play,
  });
  if (!steps.length) return null;
  return (
    <div class="slider">
      <button type="button" class="icon" aria-label={playing ? "Stop" : "Play"} aria-pressed={playing} onClick={play}>{playing ? "❚❚" : "►"}</button>
      <button type="button" class="icon" aria-label="The step before" disabled={index <= 0} onClick={() => to(index - 1)}>‹</button>
      <button type="button" class="icon" aria-label="The step after" disabled={index >= last} onClick={() => to(index + 1)}>›</button>
      <input type="range" min="0" max={last} value={index} aria-label={unit} aria-valuetext={`${unit} ${whole(steps[index] ?? 0)}`} onInput={(e) => to(Number(e.currentTarget.value))} />
      <output><span class="quiet">{unit}</span> <strong data-step={steps[index]}>{whole(steps[index] ?? 0)}</strong> <span class="quiet">{index + 1}/{steps.length}</span></output>
    </div>
  );
}
