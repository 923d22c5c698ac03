/** Follows the server-sent events: which runs appeared, grew or went. */

export interface Change {
  runs: string[];
  gone: string[];
  indexing: { done: number; total: number };
}

export function follow(
  told: (change: Change) => void,
  connected: (open: boolean) => void,
): () => void {
  // The browser connects again by itself after a break.
  const source = new EventSource("api/events");
  source.onopen = () => connected(true);
  source.onerror = () => connected(false);
  source.onmessage = (event: MessageEvent<string>) =>
    told(JSON.parse(event.data) as Change);
  return () => source.close();
}
