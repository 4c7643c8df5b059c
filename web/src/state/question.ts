/** What is asked: one flat record, which the address carries and every request is made from. */
import { LEARN_MODEL, LEARN_TOKENS } from "./topics";

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

/** Longest piece of a value that is told back. */
const MAX_TOLD = 40;
/** As many models as a comparison takes. */
export const MAX_MODELS = 6;

/**
 * What the answer of a view rests on. It stands in the address even where it is the default: a link means the
 * same when a later version begins with another model, load, engine or GPU.
 */
function stated(question: Question): ReadonlySet<keyof Question> {
  const load = ["context", "sequences", "engine", "version"] as const;
  const model = question.config ? "config" : "model";
  const device = { size: [], gpu: ["gpu", "count"], memory: ["memory", "count"] } as const;
  switch (question.view) {
    case "fit":
      return new Set([model, ...load, "target", ...device[question.target]]);
    case "plan":
      return new Set([model, ...load]);
    case "compare":
      return new Set(["models", ...load]);
    case "learn":
      return new Set(question.topic ? [...(LEARN_MODEL.has(question.topic) ? ["model" as const] : []), ...(LEARN_TOKENS.has(question.topic) ? ["context" as const] : [])] : ["newTokens"]);
    case "verify":
      return new Set();
  }
}

/** The address of a question: what its answer rests on and what differs from the defaults, in a fixed order. */
export function writeAddress(question: Question, language: string): string {
  const parts = new URLSearchParams();
  const told = stated(question);
  for (const key of Object.keys(DEFAULTS) as (keyof Question)[]) {
    if (key === "view" || key === "models") continue;
    const text = String(question[key]);
    if (question[key] !== DEFAULTS[key] || (told.has(key) && text)) parts.set(key, text);
  }
  if (told.has("models") || question.models.join("\n") !== DEFAULTS.models.join("\n")) {
    for (const model of question.models.length ? question.models : [""]) parts.append("models", model);
  }
  if (language !== "en") parts.set("lang", language);
  const text = parts.toString().replace(/%2F/g, "/").replace(/%3A/g, ":").replace(/%2C/g, ",").replace(/%40/g, "@");
  return `#${question.view}${text ? `?${text}` : ""}`;
}

export interface Address {
  question: Question;
  language: string | null;
  /** What the address says that is not understood, as it stands there, shortened. */
  ignored: string[];
}

/** The question of an address; what it says wrongly stays at its default, and is told. */
export function readAddress(hash: string): Address {
  const [name = "", query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s, 2);
  const question: Question = { ...DEFAULTS, models: [...DEFAULTS.models] };
  const ignored: string[] = [];
  const models: string[] = [];
  const seen = new Set<string>();
  let language: string | null = null;
  if ((VIEWS as string[]).includes(name)) question.view = name as View;
  else if (name) ignored.push(name.slice(0, MAX_TOLD));
  for (const [key, text] of new URLSearchParams(query)) {
    let isTaken = true;
    if (key === "models") isTaken = !text || (models.length < MAX_MODELS && !models.includes(text) && models.push(text) > 0);
    else if (seen.has(key)) isTaken = false;
    else if (key === "lang") {
      isTaken = text === "en" || text === "zh";
      if (isTaken) language = text;
    }
    else isTaken = setField(question, key, text);
    if (!isTaken) ignored.push(`${key}=${text}`.slice(0, MAX_TOLD));
    seen.add(key);
  }
  if (seen.has("models")) question.models = models;
  return { question, language, ignored };
}

/** Whether a value was understood, and so taken. */
function setField(question: Question, key: string, text: string): boolean {
  if (key === "view" || !Object.hasOwn(DEFAULTS, key) || text.length > MAX_TEXT) return false;
  const fields = question as unknown as Record<string, unknown>;
  if (key === "target") {
    if (!(TARGETS as string[]).includes(text)) return false;
  } else if (typeof DEFAULTS[key as keyof Question] === "number") {
    const [low, high] = LIMITS[key as keyof Question] ?? [0, 1e9];
    const value = text.trim() ? Number(text) : NaN;
    if (!Number.isInteger(value) || value < low || value > high) return false;
    fields[key] = value;
    return true;
  }
  fields[key] = text;
  return true;
}
