/** What would change the verdict: the most that fits, and the library's suggestions, each to be tried at once. */
import { count } from "../format";
import { useText } from "../i18n";
import type { Question } from "../state/question";
import { ask, useFollowed } from "../state/store";
import type { FitAnswer, Suggestion } from "../types";
import { Icon } from "../ui/icons";
import { kept } from "../ui/kept";
import { Num } from "../ui/num";

/** Keywords of the library's `fit` under the names of the question. */
const TEXTS: Record<string, keyof Question> = { kv_dtype: "kv", weights: "weights", engine_args: "args", reserve: "reserve", utilization: "utilization", shared_prefix: "prefix" };
const COUNTS = ["sequences", "tp", "pp", "dp", "ep", "dcp", "mtp"] as const;

/** What pressing a suggestion sets: the keywords that it changes; null where the page has no field for one. */
export function changeOf(suggestion: Suggestion, args: string): Partial<Question> | null {
  const found: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(suggestion.change ?? {})) {
    if (name === "gpu_file" || value === null) {
      if (name === "weights") found.weights = "";
    } else if (name === "context") found.context = Number(value);
    else if (name === "model") Object.assign(found, { model: String(value), config: "", configName: "" });
    else if (name === "gpu") {
      const [, gpu = "", count = "1"] = /^(.*?)(?::(\d+))?$/.exec(String(value)) ?? [];
      Object.assign(found, { target: "gpu", gpu, count: Number(count) });
    } else if (name === "engine") {
      const [engine = "", version = ""] = String(value).split("@");
      Object.assign(found, { engine, version });
    } else if ((COUNTS as readonly string[]).includes(name)) found[name] = Number(value);
    else if (name === "engine_args") found.args = [args, String(value)].filter(Boolean).join(" ");
    else if (TEXTS[name]) found[TEXTS[name]] = String(value);
    else return null;
  }
  return Object.keys(found).length ? (found as Partial<Question>) : null;
}

const argsOf = ({ question }: { question: Question }) => question.args;

function Try({ change }: { change: Partial<Question> }) {
  const { t } = useText();
  return <button type="button" class="button small" onClick={() => ask(change)}>{t("change.try")}</button>;
}

/** The card of what would change the answer. */
export const Change = kept(function Change({ fit }: { fit: FitAnswer }) {
  const { t, w } = useText();
  const args = useFollowed(argsOf);
  const { max_context_tokens: longest, max_sequences: most, kv_pool: pool, request } = fit;
  const facts = (by: string) => [t("change.limitedBy", { what: w("limited", by) })];
  return (
    <section class="card" aria-label={t("change.title")}>
      <header class="card-head"><h2>{t("change.title")}</h2></header>
      <ul class="change">
        <li>
          <span class="change-name">{t("change.longest", { sequences: count(request.sequences) })}</span>
          <span class="change-value">
            {longest > 0 ? <Num value={longest} text={`${count(longest)} ${t("unit.tokens")}`} topic={{ title: t("change.longest", { sequences: count(request.sequences) }), facts: facts(fit.max_context_limited_by), steps: ["growth", "per_sequence"] }} /> : t("change.none")}
            <small>{w("limited", fit.max_context_limited_by)}</small>
          </span>
          {longest > 0 && longest !== request.context_tokens ? <Try change={{ context: longest }} /> : null}
        </li>
        <li>
          <span class="change-name">{t("change.most", { tokens: count(request.context_tokens) })}</span>
          <span class="change-value">
            {most > 0 ? <Num value={most} text={count(most)} topic={{ title: t("change.most", { tokens: count(request.context_tokens) }), facts: facts(fit.max_sequences_limited_by), steps: ["per_sequence", "total"] }} /> : t("change.none")}
            <small>{w("limited", fit.max_sequences_limited_by)}</small>
          </span>
          {most > 0 && most !== request.sequences ? <Try change={{ sequences: most }} /> : null}
        </li>
        {pool.capacity_tokens !== null ? (
          <li>
            <span class="change-name">{t("change.capacity")}</span>
            <span class="change-value">
              <Num value={pool.capacity_tokens} text={`${count(pool.capacity_tokens)} ${t("unit.tokens")}`} topic={{ title: t("change.capacity"), steps: ["blocks"], facts: poolFacts(fit, t) }} />
              {pool.max_concurrency !== null ? <small>{t("change.concurrency", { times: pool.max_concurrency.toFixed(2) })}</small> : null}
            </span>
          </li>
        ) : null}
        {fit.suggestions.map((suggestion) => {
          const change = changeOf(suggestion, args);
          return (
            <li class="suggestion">
              <span class={`mark ${suggestion.fits ? "mark-fits" : ""}`}><Icon name={suggestion.fits ? "check" : "arrow"} /></span>
              <span class="change-name">{suggestion.message}</span>
              {change ? <Try change={change} /> : null}
            </li>
          );
        })}
      </ul>
    </section>
  );
});

function poolFacts(fit: FitAnswer, t: ReturnType<typeof useText>["t"]): string[] {
  const { kv_pool: pool } = fit;
  if (pool.num_blocks === null || pool.bytes_per_block === null) return [];
  return [t("change.blocks", { blocks: count(pool.num_blocks), bytes: count(pool.bytes_per_block), tokens: pool.block_size_tokens ?? "—" })];
}
