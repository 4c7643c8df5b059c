/** From a question to what is sent to the API, and to the command that asks the same at a terminal. */
import type { Question } from "./question";
import { LEARN_MODEL, LEARN_TOKENS } from "./topics";

export type Body = Record<string, unknown>;

/** Fields of a load that size, fit, plan, compare and explain share. */
export function loadBody(question: Question): Body {
  const body: Body = {};
  if (question.context === -1) body.context = "max";
  else if (question.context) body.context = question.context;
  body.sequences = question.sequences;
  if (question.kv) body.kv_dtype = question.kv;
  if (question.engine) body.engine = question.version ? `${question.engine}@${question.version}` : question.engine;
  if (question.args.trim()) body.engine_args = question.args.trim();
  if (question.weights.trim()) body.weights = question.weights.trim();
  for (const key of ["tp", "pp", "dp", "ep", "dcp", "mtp"] as const) if (question[key]) body[key] = question[key];
  if (question.prefix.trim()) body.shared_prefix = question.prefix.trim();
  const overrides = overridesOf(question);
  if (overrides.length) body.overrides = Object.fromEntries(overrides.map(parseOverride));
  return body;
}

/** KEY=VALUE, the value as JSON where it is JSON. */
function parseOverride(line: string): [string, unknown] {
  const at = line.indexOf("=");
  if (at < 0) return [line, true];
  const text = line.slice(at + 1).trim();
  try {
    return [line.slice(0, at).trim(), JSON.parse(text) as unknown];
  } catch {
    return [line.slice(0, at).trim(), text];
  }
}

function overridesOf(question: Question): string[] {
  return question.override.split(/[\n;]/).map((line) => line.trim()).filter(Boolean);
}

/** The model as the API takes it: a name, or the config itself. */
export function modelOf(question: Question): unknown {
  if (!question.config) return question.model.trim();
  try {
    return JSON.parse(question.config) as unknown;
  } catch {
    return question.config;
  }
}

/** What an engine may take of a card. A share that is no number is sent as it stands: the library says so. */
function shareBody(question: Question): Body {
  const body: Body = {};
  const share = question.utilization.trim();
  if (share) body.utilization = Number.isNaN(Number(share)) ? share : Number(share);
  if (question.reserve.trim()) body.reserve = question.reserve.trim();
  return body;
}

/** The device part of a fit. */
export function deviceBody(question: Question): Body {
  const body: Body = {};
  const counted = (name: string) => (question.count > 1 ? `${name}:${question.count}` : name);
  if (question.target === "memory") body.memory = counted(question.memory);
  else body.gpu = counted(question.gpu);
  Object.assign(body, shareBody(question));
  return body;
}

export function sizeBody(question: Question): Body {
  const body: Body = { model: modelOf(question), ...loadBody(question) };
  // A fit on N devices without a split is tensor parallel over them: the size beside it is asked for the same.
  if (question.target !== "size" && question.count > 1 && !question.tp && !question.pp && !question.dp) body.tp = question.count;
  return body;
}

export function fitBody(question: Question): Body {
  return { model: modelOf(question), ...loadBody(question), ...deviceBody(question) };
}

export function planBody(question: Question): Body {
  const body: Body = { model: modelOf(question), ...loadBody(question) };
  if (question.only.trim()) body.gpu = question.only.trim();
  return { ...body, ...shareBody(question) };
}

export function compareBody(question: Question): Body {
  return { models: question.models, ...loadBody(question) };
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, `'\\''`)}'`;
}

/** The command line that gives the answer of a view. */
export function commandOf(question: Question): string {
  const words: string[] = ["kvgauge"];
  const add = (flag: string, value: string | number) => words.push(flag, quoted(String(value)));
  const load = () => {
    if (question.context === -1) add("--context", "max");
    else if (question.context) add("--context", question.context);
    add("--sequences", question.sequences);
    if (question.kv) add("--kv-dtype", question.kv);
    if (question.engine) add("--engine", question.version ? `${question.engine}@${question.version}` : question.engine);
    if (question.args.trim()) add("--engine-args", question.args.trim());
    if (question.weights.trim()) add("--weights", question.weights.trim());
    for (const key of ["tp", "pp", "dp", "ep", "dcp", "mtp"] as const) if (question[key]) add(`--${key}`, question[key]);
    if (question.prefix.trim()) add("--shared-prefix", question.prefix.trim());
    for (const line of overridesOf(question)) add("--override", line);
  };
  const model = question.config ? question.configName || "config.json" : question.model.trim();
  if (question.view === "compare") {
    words.push("compare", ...question.models.map(quoted));
    load();
  } else if (question.view === "verify") {
    words.push("verify", "server.log");
  } else if (question.view === "learn") {
    words.push("learn", question.topic || "walk");
    if (!question.topic && question.prompt) words.push(quoted(question.prompt));
    if (!question.topic) add("--new-tokens", question.newTokens);
    if (LEARN_MODEL.has(question.topic)) words.push(quoted(model));
    if (LEARN_TOKENS.has(question.topic) && question.context > 0) add("--tokens", question.context);
  } else if (question.view === "plan") {
    words.push("plan", quoted(model));
    load();
    if (question.only.trim()) add("--gpu", question.only.trim());
    if (question.utilization.trim()) add("--utilization", question.utilization.trim());
    if (question.reserve.trim()) add("--reserve", question.reserve.trim());
  } else {
    words.push(question.target === "size" ? "size" : "fit", quoted(model));
    load();
    if (question.target !== "size") {
      for (const [key, value] of Object.entries(deviceBody(question))) add(`--${key}`, String(value));
    }
  }
  return words.join(" ");
}
