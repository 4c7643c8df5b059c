/** Answers of the server for the present question: the latest wins, the last one stays until the next is there. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { ApiError, post } from "../api";
import { shared } from "./shared";
import type { ErrorBody } from "../types";

/** How long a question must stand before what takes longer is asked for. */
const REST_MS = 250;

/** A body once it has stood for a while; null until then, so that a slider asks for it when it rests. */
export function useRested(body: Record<string, unknown> | null): Record<string, unknown> | null {
  const key = body === null ? "" : JSON.stringify(body);
  const [rested, setRested] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setRested(key), rested ? REST_MS : 0);
    return () => clearTimeout(timer);
  }, [key]);
  return rested === key ? body : null;
}

export interface Answer<T> {
  value: T | null;
  error: ErrorBody | null;
  /** The question has changed since `value`. */
  stale: boolean;
}

let asking = 0;

/** Mark the page while it waits for answers, for styles and for whoever watches it. */
function mark(change: 1 | -1): void {
  asking += change;
  if (asking) document.documentElement.dataset.asking = "";
  else delete document.documentElement.dataset.asking;
}

/** How long an overtaken question may still run. */
const PATIENCE_MS = 400;

/** An answer and the question that it is to. */
interface Held<T> {
  key: string;
  value: T | null;
  error: ErrorBody | null;
}

const NOTHING: Held<never> = { key: "", value: null, error: null };

/**
 * Ask `path` for `body` whenever it changes. One request is under way at a time: while it is, only the newest
 * question waits, so that a slider never queues requests. A body of null asks nothing.
 */
export function useAnswer<T>(path: string, body: Record<string, unknown> | null): Answer<T> {
  const [held, setHeld] = useState<Held<T>>(NOTHING);
  const wanted = useRef<{ key: string; body: Record<string, unknown> | null }>({ key: "", body: null });
  const busy = useRef<AbortController | null>(null);
  const running = useRef("");
  const alive = useRef(true);
  const key = body === null ? "" : path + JSON.stringify(body);

  const run = async () => {
    if (busy.current) return;
    let done = "";
    while (alive.current && wanted.current.key && wanted.current.key !== done) {
      const { key: asked, body: sent } = wanted.current;
      running.current = asked;
      let value: T | null = null;
      let error: ErrorBody | null = null;
      busy.current = new AbortController();
      mark(1);
      try {
        value = await post<T>(path, sent, busy.current.signal);
      } catch (problem) {
        if ((problem as Error).name === "AbortError") continue;
        error = problem instanceof ApiError ? problem.body : { code: "page", message: String(problem), hint: null, field: null };
      } finally {
        mark(-1);
      }
      done = asked;
      if (!alive.current) break;
      if (wanted.current.key) setHeld((last) => ({ key: asked, value: shared(last.value, value), error }));
    }
    busy.current = null;
  };

  useEffect(() => {
    alive.current = true;
    return () => void (alive.current = false);
  }, []);
  // Before the frame is drawn: the server works while the browser does.
  useLayoutEffect(() => {
    wanted.current = { key, body };
    if (!key) {
      setHeld(NOTHING);
      return;
    }
    void run();
    // A question that the newest one has overtaken is given up, so that a slow hub holds nothing back.
    const late = setTimeout(() => {
      if (wanted.current.key === key && running.current !== key) busy.current?.abort();
    }, PATIENCE_MS);
    return () => clearTimeout(late);
  }, [key]);
  const stale = held.key !== key;
  return useMemo(() => ({ value: held.value, error: held.error, stale }), [held, stale]);
}
