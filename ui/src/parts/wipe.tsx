/** Two images over each other; a slider says where one ends and the other begins. */

import { useState } from "preact/hooks";

export function Wipe({ a, b, names }: { a: string; b: string; names: [string, string] }) {
  const [share, setShare] = useState(50);
  return (
    <div class="wipe">
      <div class="wipe-images">
        <img src={a} alt={names[0]} />
        <img src={b} alt={names[1]} style={{ clipPath: `inset(0 0 0 ${share}%)` }} />
        <div class="wipe-edge" style={{ left: `${share}%` }} />
      </div>
      <label class="choice wide"><span>{names[0]}</span><input type="range" aria-label="How much of the first is seen" min="0" max="100" value={share} onInput={(e) => setShare(Number(e.currentTarget.value))} /><span>{names[1]}</span></label>
    </div>
  );
}
