/** Which number's derivation is open. */
import { useEffect, useState } from "preact/hooks";
import type { Grade } from "../types";

export interface Part {
  name: string;
  bytes: number;
  low?: number;
  high?: number;
  grade?: Grade;
  because?: string;
}

export interface Topic {
  title: string;
  value: string;
  exact?: string;
  /** Steps of `explain` that derive it; one that ends in a dot names all that begin so. */
  steps?: string[];
  /** What it is the sum of, as the answer lists it. */
  parts?: Part[];
  /** Sentences of the answer about it. */
  facts?: string[];
  /** What to ask "explain" for, where it is not the question of the page; null where no step derives it. */
  ask?: Record<string, unknown> | null;
}

const listeners = new Set<(topic: Topic | null) => void>();
let opener: HTMLElement | null = null;

/** Open the derivation of a number; focus comes back to it afterwards. */
export function derive(topic: Topic): void {
  opener = document.activeElement as HTMLElement | null;
  for (const listener of listeners) listener(topic);
}

/** Close it. */
export function closeDerivation(): void {
  for (const listener of listeners) listener(null);
  opener?.focus();
}

/** The open topic, for the drawer. */
export function useTopic(): Topic | null {
  const [topic, setTopic] = useState<Topic | null>(null);
  useEffect(() => {
    listeners.add(setTopic);
    return () => void listeners.delete(setTopic);
  }, []);
  return topic;
}
