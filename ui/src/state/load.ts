/** Loads something for a component, and keeps the last of it while the next comes. */

import { useLayoutEffect, useState } from "preact/hooks";

export interface Loaded<T> {
  data: T | null;
  error: string | null;
  /** What the data was loaded for. */
  key: string | null;
}

export function useLoad<T>(
  key: string | null,
  load: (signal: AbortSignal) => Promise<T>,
): Loaded<T> {
  const [state, setState] = useState<Loaded<T>>({ data: null, error: null, key: null });
  // At once, not after the next paint: a step must be seen within a tenth of a second.
  useLayoutEffect(() => {
    if (key === null) {
      setState({ data: null, error: null, key: null });
      return undefined;
    }
    const controller = new AbortController();
    load(controller.signal).then(
      (data) => {
        if (!controller.signal.aborted) setState({ data, error: null, key });
      },
      (error: unknown) => {
        if (controller.signal.aborted) return;
        setState((old) => ({ ...old, error: String((error as Error).message), key }));
      },
    );
    return () => controller.abort();
  }, [key]);
  return state;
}
