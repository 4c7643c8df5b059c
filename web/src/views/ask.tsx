/** The question: model, load, engine, hardware. */
import { get } from "../api";
import { count, parseTokens, shortTokens } from "../format";
import { useText } from "../i18n";
import { KNOWN_MODELS, recentModels } from "../state/recent";
import { ask, usePage } from "../state/store";
import type { EngineRow, GpuRow, ModelInfo, SearchAnswer } from "../types";
import { bytes } from "../format";
import { Combobox, type Offer } from "../ui/combobox";
import { Icon } from "../ui/icons";
import { Slider } from "../ui/slider";
import { More } from "./ask_more";
import { openPaste } from "./paste";

/** KV dtypes that people choose; the engine's other words go in the field of flags. */
const KV_DTYPES = ["", "bf16", "fp16", "fp8", "fp8_e5m2", "int8", "nvfp4", "fp8_ds_mla", "q8_0", "q5_1", "q4_0"];

/** Fewer names than this in the catalogue, and the hub is asked as well. */
const FEW = 6;

/** Names of the catalogue, then the hub's, that begin with or hold the text; the last ones used for no text. */
export async function findModels(text: string, signal: AbortSignal): Promise<Offer[]> {
  const query = text.trim();
  if (!query) return [...new Set([...recentModels(), ...KNOWN_MODELS])].map((value) => ({ value }));
  const ask = (more: Record<string, number>) => get<SearchAnswer>("search", { q: query, limit: 20, ...more }, signal);
  const found = await ask({});
  const all = found.models.length < FEW && query.length > 2 ? await ask({ hub: 1 }).catch(() => found) : found;
  return all.models.map((row) => ({ value: row.id, detail: row.source === "catalogue" ? "" : row.source }));
}

let gpuRows: Promise<GpuRow[]> | null = null;

/** Every GPU that the library knows, asked for once. */
export function allGpus(): Promise<GpuRow[]> {
  gpuRows ??= get<{ gpus: GpuRow[] }>("gpus").then((answer) => answer.gpus);
  gpuRows.catch(() => (gpuRows = null));
  return gpuRows;
}

async function findGpus(text: string): Promise<Offer[]> {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = await allGpus();
  const named = rows.filter((row) => {
    const names = [row.id, row.name, ...row.aliases].join(" ").toLowerCase();
    return words.every((word) => names.includes(word));
  });
  const order = (row: GpuRow) => (row.kind === "datacenter" ? 0 : 1) * 10000 - (row.year ?? 0);
  return named.sort((a, b) => order(a) - order(b)).slice(0, 40).map((row) => ({
    value: row.name,
    detail: [row.memory ? bytes(row.memory.central_bytes) : bytes(row.label_bytes), row.year ?? ""].filter(Boolean).join(" · "),
  }));
}

function contextGrain(value: number): number {
  if (value < 2048) return 64;
  if (value < 16384) return 256;
  return value < 131072 ? 1024 : 4096;
}

/** The upper end of the context slider. */
export function contextEnd(limit: number | null | undefined, context: number): number {
  return Math.max(limit || 131072, context, 2048);
}

function ModelField({ model }: { model: ModelInfo | null }) {
  const { t, w } = useText();
  const { question } = usePage();
  if (question.config) {
    return (
      <div class="field">
        <span class="label">{t("ask.model")}</span>
        <div class="chip-row">
          <span class="chip file"><Icon name="file" /><b>{question.configName || "config.json"}</b></span>
          <button type="button" class="button small" onClick={() => ask({ config: "", configName: "" })}>{t("ask.model.byName")}</button>
        </div>
      </div>
    );
  }
  return (
    <div class="model-field">
      <Combobox label={t("ask.model")} hideLabel value={question.model} placeholder="org/name" find={findModels} nothing={t("ask.model.none")}
        onChoose={(model) => ask({ model })} />
      {model ? (
        <p class="hint">
          {t("ask.model.about", { layers: count(model.num_layers), type: model.model_type })}
          {model.context_limit_tokens ? ` · ${t("ask.model.limit", { tokens: count(model.context_limit_tokens) })}` : ""}
          {` · ${w("source", model.source)}`}
        </p>
      ) : null}
    </div>
  );
}

/** Engine, version, and the dtypes of cache and weights. */
export function EngineFields({ engines }: { engines: EngineRow[] }) {
  const { t, w } = useText();
  const { question } = usePage();
  const row = engines.find((engine) => engine.name === question.engine);
  const versions = [...(row?.versions ?? [])].reverse();
  return (
    <>
      <div class="pair wide-first">
        <div class="field">
          <label for="engine">{t("ask.engine")}</label>
          <select id="engine" value={question.engine} onChange={(event) => ask({ engine: event.currentTarget.value, version: "" })}>
            {(engines.length ? engines.map((engine) => engine.name) : [question.engine]).map((name) => <option value={name}>{w("engine", name)}</option>)}
          </select>
        </div>
        <div class="field">
          <label for="version">{t("ask.version")}</label>
          <input id="version" class="text" list="versions" autocomplete="off" value={question.version} placeholder={row?.newest_version ?? "—"} disabled={!versions.length}
            onChange={(event) => ask({ version: event.currentTarget.value.trim() })} />
          <datalist id="versions">{versions.map((version) => <option value={version} />)}</datalist>
        </div>
      </div>
      <div class="pair">
        <div class="field">
          <label for="kv">{t("ask.kv")}</label>
          <select id="kv" value={question.kv} onChange={(event) => ask({ kv: event.currentTarget.value })}>
            {[...new Set([...KV_DTYPES, question.kv])].map((name) => <option value={name}>{name || t("ask.kv.auto")}</option>)}
          </select>
        </div>
        <div class="field">
          <label for="weights">{t("ask.weights")}</label>
          <input id="weights" class="text" list="schemes" autocomplete="off" value={question.weights} placeholder={t("ask.weights.asis")}
            onChange={(event) => ask({ weights: event.currentTarget.value.trim() })} />
          <datalist id="schemes">{["bf16", "fp8", "int8", "int4", "nvfp4", "mxfp4", "q8_0", "q6_k", "q5_k_m", "q4_k_m", "iq4_xs"].map((name) => <option value={name} />)}</datalist>
        </div>
      </div>
    </>
  );
}

function Hardware({ numGpus }: { numGpus: number | null }) {
  const { t } = useText();
  const { question } = usePage();
  const choice = question.view === "plan" ? "plan" : question.target;
  const set = (to: string) => {
    if (to === "plan") ask({ view: "plan" });
    else ask({ view: "fit", target: to as "size" | "gpu" | "memory" });
  };
  return (
    <fieldset class="group">
      <legend>{t("ask.hardware")}</legend>
      <div class="segments" role="radiogroup" aria-label={t("ask.hardware")}>
        {(["gpu", "memory", "size", "plan"] as const).map((name) => (
          <label class={choice === name ? "on" : ""}>
            <input type="radio" name="hardware" value={name} checked={choice === name} onChange={() => set(name)} />
            <span>{t(`ask.target.${name}`)}</span>
          </label>
        ))}
      </div>
      {choice === "gpu" || choice === "memory" ? (
        <div class="pair wide-first">
          {choice === "gpu" ? (
            <Combobox label={t("ask.gpu")} value={question.gpu} find={findGpus} nothing={t("ask.gpu.none")} onChoose={(gpu) => ask({ gpu })} />
          ) : (
            <div class="field">
              <label for="memory">{t("ask.memory")}</label>
              <input id="memory" class="text" value={question.memory} onChange={(event) => ask({ memory: event.currentTarget.value.trim() || "24GiB" })} />
            </div>
          )}
          <div class="field">
            <label for="count">{t("ask.count")}</label>
            <input id="count" class="text" type="number" min={1} max={1024} value={question.count}
              onInput={(event) => {
                const value = Number(event.currentTarget.value);
                if (Number.isInteger(value) && value >= 1 && value <= 1024) ask({ count: value });
              }} />
          </div>
        </div>
      ) : null}
      {choice !== "plan" && numGpus !== null && numGpus !== question.count ? <p class="hint">{t("ask.count.flags", { count: numGpus })}</p> : null}
      {choice === "plan" ? (
        <div class="field">
          <label for="only">{t("ask.only")}</label>
          <input id="only" class="text" autocomplete="off" value={question.only} placeholder={t("ask.only.any")} onChange={(event) => ask({ only: event.currentTarget.value.trim() })} />
        </div>
      ) : null}
    </fieldset>
  );
}

interface Props {
  engines: EngineRow[];
  model: ModelInfo | null;
  /** The context that the library took where none was named. */
  context: number;
  /** How many GPUs the answer is for, where flags say so. */
  numGpus: number | null;
}

/** The panel on the left. */
export function Ask({ engines, model, context, numGpus }: Props) {
  const { t } = useText();
  const { question } = usePage();
  const limit = model?.context_limit_tokens;
  const end = contextEnd(limit, context);
  const marks = [{ at: 256, text: "256" }, ...(limit && limit <= end ? [{ at: limit, text: t("ask.context.mark", { tokens: shortTokens(limit) }) }] : [])];
  return (
    <form class="ask" aria-label={t("ask.title")} onSubmit={(event) => event.preventDefault()}>
      <fieldset class="group">
        <legend>{t("ask.group.model")}</legend>
        <ModelField model={model} />
        <div class="chip-row">
          <button type="button" class="button small" onClick={() => openPaste("config")}><Icon name="file" /><span>{t("ask.paste.config")}</span></button>
          <button type="button" class="button small" onClick={() => openPaste("command")}><Icon name="terminal" /><span>{t("ask.paste.command")}</span></button>
        </div>
        <p class="hint">{t("ask.drop")}</p>
      </fieldset>
      <fieldset class="group">
        <legend>{t("ask.group.load")}</legend>
        <Slider label={t("ask.context")} unit={t("unit.tokens")} value={context} low={256} high={end} grain={contextGrain} show={count} parse={parseTokens}
          marks={marks} onChange={(value) => ask({ context: value })}>
          <button type="button" class="tag" aria-pressed={question.context === -1} onClick={() => ask({ context: question.context === -1 ? context : -1 })}>{t("ask.context.max")}</button>
        </Slider>
        <Slider label={t("ask.sequences")} unit={t("unit.atOnce")} value={question.sequences} low={1} high={Math.max(1024, question.sequences)}
          grain={(value) => (value < 64 ? 1 : value < 256 ? 4 : 16)} show={count} parse={parseTokens} onChange={(sequences) => ask({ sequences })} />
      </fieldset>
      <Hardware numGpus={numGpus} />
      <fieldset class="group">
        <legend>{t("ask.group.engine")}</legend>
        <EngineFields engines={engines} />
      </fieldset>
      <More />
    </form>
  );
}
