/** Models that were asked for last in this browser, for whoever opens the list without a word. */
import { store, stored } from "./store";

const KEY = "kvgauge.models";
const MOST = 5;

/** To begin with: one of each design. */
export const KNOWN_MODELS = [
  "Qwen/Qwen3-8B",
  "deepseek-ai/DeepSeek-V3.2",
  "google/gemma-3-27b-it",
  "Qwen/Qwen3.5-35B-A3B",
  "openai/gpt-oss-120b",
  "meta-llama/Llama-3.1-70B-Instruct",
];

/** The last ones, newest first. */
export function recentModels(): string[] {
  return (stored(KEY) ?? "").split("\n").filter(Boolean).slice(0, MOST);
}

/** Remember one that was answered. */
export function remember(model: string): void {
  const kept = recentModels().filter((other) => other !== model);
  store(KEY, [model, ...kept].slice(0, MOST).join("\n"));
}
