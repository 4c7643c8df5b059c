/** The log that the view "verify" looks at; it is no part of the address, which could not carry it. */
const listeners = new Set<() => void>();
let log = { text: "", name: "" };

/** Take a log. */
export function takeLog(text: string, name: string): void {
  log = { text, name };
  for (const listener of listeners) listener();
}

/** The log at hand. */
export function currentLog(): { text: string; name: string } {
  return log;
}

/** Hear of a new one. */
export function onLog(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}
