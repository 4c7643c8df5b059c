/** What is asked: one flat record, which the address carries and every request is made from. */

export type View = "fit" | "plan" | "compare" | "verify" | "learn";
export type Target = "size" | "gpu" | "memory";

export interface Question {
  view: View;
  model: string;
  /** A pasted or dropped config.json, compact; empty where the model is named. */
  config: string;
  configName: string;
  /** Tokens of one sequence; 0 leaves it to the library, -1 is the longest that the model takes. */
  context: number;
  sequences: number;
  kv: string;
  engine: string;
  version: string;
  args: string;
  target: Target;
  gpu: string;
  count: number;
  memory: string;
  utilization: string;
  reserve: string;
  weights: string;
  tp: number;
  pp: number;
  dp: number;
  ep: number;
  dcp: number;
  mtp: number;
  prefix: string;
  override: string;
  /** Models to compare, one a line in the address as repeated keys. */
  models: string[];
  /** The only GPU that a plan may take; empty for any. */
  only: string;
  /** What a log leaves open. */
  logGpu: string;
  logModel: string;
  /** What the view "learn" shows. */
  topic: string;
  prompt: string;
  step: number;
  newTokens: number;
}

export const DEFAULTS: Question = {
  view: "fit",
  model: "Qwen/Qwen3-8B",
  config: "",
  configName: "",
  context: 32768,
  sequences: 8,
  kv: "",
  engine: "vllm",
  version: "",
  args: "",
  target: "gpu",
  gpu: "H100",
  count: 1,
  memory: "24GiB",
  utilization: "",
  reserve: "",
  weights: "",
  tp: 0,
  pp: 0,
  dp: 0,
  ep: 0,
  dcp: 0,
  mtp: 0,
  prefix: "",
  override: "",
  models: ["Qwen/Qwen3-8B", "deepseek-ai/DeepSeek-V3.2"],
  only: "",
  logGpu: "",
  logModel: "",
  topic: "",
  prompt: "",
  step: 0,
  newTokens: 6,
};

export const VIEWS: readonly View[] = ["fit", "plan", "compare", "verify", "learn"];
const TARGETS: readonly Target[] = ["size", "gpu", "memory"];
const LIMITS: Partial<Record<keyof Question, [number, number]>> = {
  context: [-1, 1e9],
  sequences: [1, 1e6],
  count: [1, 1024],
  tp: [0, 1024],
  pp: [0, 1024],
  dp: [0, 1024],
  ep: [0, 1024],
  dcp: [0, 1024],
  mtp: [0, 64],
  step: [0, 1e6],
  newTokens: [1, 64],
};
/** Longest text that an address may carry in one field. */
const MAX_TEXT = 60000;

/** The address of a question: what differs from the defaults, in a fixed order. */
export function writeAddress(question: Question, language: string): string {
  const parts = new URLSearchParams();
  for (const key of Object.keys(DEFAULTS) as (keyof Question)[]) {
    if (key === "view" || key === "models") continue;
    if (key === "config" && question.config) {
      parts.set("config", question.config);
    } else if (question[key] !== DEFAULTS[key]) {
      parts.set(key, String(question[key]));
    }
  }
  if (question.models.join("\n") !== DEFAULTS.models.join("\n")) {
    for (const model of question.models) parts.append("models", model);
    if (question.models.length === 0) parts.append("models", "");
  }
  if (language !== "en") parts.set("lang", language);
  const text = parts.toString().replace(/%2F/g, "/").replace(/%3A/g, ":").replace(/%2C/g, ",").replace(/%40/g, "@");
  return `#${question.view}${text ? `?${text}` : ""}`;
}

/** The question of an address; what it says wrongly stays at its default. */
export function readAddress(hash: string): { question: Question; language: string | null } {
  const [name, query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const parts = new URLSearchParams(hash.includes("?") ? hash.slice(hash.indexOf("?") + 1) : query);
  const question: Question = { ...DEFAULTS, models: [...DEFAULTS.models] };
  if ((VIEWS as string[]).includes(name ?? "")) question.view = name as View;
  for (const [key, text] of parts) setField(question, key, text.slice(0, MAX_TEXT));
  if (parts.has("models")) question.models = parts.getAll("models").filter(Boolean).slice(0, 6);
  return { question, language: parts.get("lang") };
}

function setField(question: Question, key: string, text: string): void {
  if (key === "view" || key === "models" || !(key in DEFAULTS)) return;
  const fields = question as unknown as Record<string, unknown>;
  if (key === "target") {
    if ((TARGETS as string[]).includes(text)) question.target = text as Target;
  } else if (typeof DEFAULTS[key as keyof Question] === "number") {
    const [low, high] = LIMITS[key as keyof Question] ?? [0, 1e9];
    const value = Number(text);
    if (Number.isInteger(value) && value >= low && value <= high) fields[key] = value;
  } else {
    fields[key] = text;
  }
}
