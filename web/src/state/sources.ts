/** What is dropped or pasted: a config, the header of a GGUF, an engine's log, a launch command. */
import { ApiError, post, put } from "../api";
import type { ModelInfo } from "../types";
import type { Question } from "./question";

/** First slice of a GGUF that is sent; each further one is as long as the server asks, at least doubled. */
const FIRST_SLICE = 256 * 1024;
/** Longest config that an address carries. */
const MAX_CONFIG = 60000;

interface GgufAnswer {
  state: "incomplete" | "complete";
  need_bytes: number | null;
  model: (ModelInfo & { name: string }) | null;
}

/** Send growing beginnings of a GGUF until the server has its header; returns the name to ask for. */
export async function sendGguf(file: File, tell: (sent: number) => void): Promise<{ name: string; id: string }> {
  let length = Math.min(file.size, FIRST_SLICE);
  for (;;) {
    tell(length);
    const path = `gguf?size=${file.size}&name=${encodeURIComponent(file.name.slice(0, 200))}`;
    const answer = await put<GgufAnswer>(path, file.slice(0, length), { "content-type": "application/octet-stream" });
    if (answer.model) return { name: answer.model.name, id: file.name };
    if (length >= file.size) throw new ApiError({ code: "damaged_file", message: `${file.name}`, hint: null, field: null }, 0);
    length = Math.min(file.size, Math.max(length * 2, answer.need_bytes ?? 0));
  }
}

/** A config as the address carries it; an error text's key otherwise. */
export function readConfig(text: string): { config: string } | { problem: "paste.noJson" | "paste.tooLong" } {
  try {
    const value = JSON.parse(text) as unknown;
    if (typeof value !== "object" || value === null || Array.isArray(value)) return { problem: "paste.noJson" };
    const config = JSON.stringify(value);
    return config.length > MAX_CONFIG ? { problem: "paste.tooLong" } : { config };
  } catch {
    return { problem: "paste.noJson" };
  }
}

interface Parsed {
  engine?: string | null;
  model?: string | null;
  engine_args?: string | null;
}

/** A launch command as a question. */
export async function readCommand(text: string, language: string): Promise<Partial<Question>> {
  const found = await post<Parsed>("parse-command", { command: text, lang: language });
  // The flags say what is reserved and how it is split; what the page said of that before would contradict them.
  const change: Partial<Question> = { args: found.engine_args ?? "", context: 0, kv: "", count: 1, tp: 0, pp: 0, dp: 0, ep: 0, dcp: 0, utilization: "" };
  if (found.model) Object.assign(change, { model: found.model, config: "", configName: "" });
  if (found.engine) {
    const [name = "", version = ""] = found.engine.split("@");
    Object.assign(change, { engine: name, version });
  }
  return change;
}

/** Whether a text looks like a command that starts an engine. */
export function isCommand(text: string): boolean {
  return /^\s*(?:[\w./-]*\/)?(vllm\s+serve|python3?\s+-m\s+(vllm|sglang)|sglang\s|llama-(server|cli)|trtllm-serve|docker\s+run|ollama\s|[A-Z_][A-Z0-9_]*=\S+\s+\w)/.test(text);
}
