/** Which GPUs, how many, split how: the options in order, and the decision tree with the path that was taken. */
import { Bars } from "../charts/bars";
import { ChartCard } from "../charts/frame";
import { Tree } from "../charts/tree";
import { count } from "../format";
import { useText } from "../i18n";
import { markdown } from "../api";
import type { Answer } from "../state/answers";
import { planBody } from "../state/request";
import { ask, usePage } from "../state/store";
import type { Question } from "../state/question";
import type { PlanAnswer, PlanOption } from "../types";
import { CopyButton } from "../ui/copy";
import { Icon } from "../ui/icons";
import { Num } from "../ui/num";
import { asParts, fitBars, fullest } from "./parts";
import { Problem } from "./problem";
import { Share } from "./share";

/** How many options are shown in full. */
const SHOWN = 12;
const ICONS = { fits: "check", tight: "tight", does_not_fit: "cross" } as const;

const SHORT: Record<string, string> = { tensor_parallel: "TP", pipeline_parallel: "PP", data_parallel: "DP", expert_parallel: "EP", context_parallel: "DCP" };

function split(option: PlanOption): string {
  if (typeof option.parallelism === "string") return option.parallelism;
  return Object.entries(option.parallelism).filter(([, value]) => typeof value === "number" && value > 1).map(([name, value]) => `${SHORT[name] ?? name} ${value}`).join(" · ") || "—";
}

/** The fit that an option is, as a question. */
function closer(option: PlanOption): Partial<Question> {
  const ranks = typeof option.parallelism === "string" ? {} : option.parallelism;
  const many = (name: string) => ((ranks[name] ?? 1) > 1 ? (ranks[name] ?? 0) : 0);
  return {
    view: "fit",
    target: "gpu",
    gpu: option.gpu,
    count: option.num_gpus,
    tp: many("tensor_parallel") || (option.num_gpus > 1 ? 1 : 0),
    pp: many("pipeline_parallel"),
    dp: many("data_parallel"),
    ep: many("expert_parallel"),
    dcp: many("context_parallel"),
    ...(option.kv_dtype_changed ? { kv: option.kv_dtype_changed } : {}),
    ...(option.weights_changed ? { weights: option.weights_changed } : {}),
  };
}

function OptionRow({ option, at }: { option: PlanOption; at: number }) {
  const { t, w } = useText();
  const worst = fullest(option);
  const open = () => ask(closer(option));
  return (
    <li class={`option ${at === 0 ? "first" : ""}`}>
      <div class="option-head">
        <span class={`status status-${option.verdict.status}`}><Icon name={ICONS[option.verdict.status]} />{w("status", option.verdict.status)}</span>
        <h3>{option.num_gpus > 1 ? `${option.num_gpus} × ` : ""}{option.gpu}</h3>
        <span class="quiet">{split(option)}</span>
        {option.price_per_hour !== null ? <span class="price" title={option.price ? `${option.price.source}, ${option.price.date}` : ""}>${option.price_per_hour.toFixed(2)}{t("plan.perHour")}</span> : null}
        <button type="button" class="button small" onClick={open}>{t("plan.open")} <Icon name="arrow" /></button>
      </div>
      <p class="quiet">{option.rank_reason}</p>
      <p>{option.verdict.sentence}</p>
      <Bars bars={fitBars(option, [], () => "").slice(0, 1)} limit={option.verdict.available_bytes} summary={option.verdict.sentence} />
      <p class="option-facts">
        <Num value={option.verdict.required_bytes} topic={{ title: t("verdict.required"), parts: worst ? asParts(worst.allocations, (one) => w("allocation", one.name)) : [], facts: [option.verdict.sentence] }} /> {t("plan.perGpu")}
        {" · "}{t("change.longest", { sequences: count(option.request.sequences) })}: <Num value={option.max_context_tokens} text={count(option.max_context_tokens)} topic={{ title: t("change.longest", { sequences: count(option.request.sequences) }), facts: [t("change.limitedBy", { what: w("limited", option.max_context_limited_by) })], steps: ["growth", "per_sequence"] }} />
        {" · "}{t("change.most", { tokens: count(option.request.context_tokens) })}: <Num value={option.max_sequences} text={count(option.max_sequences)} topic={{ title: t("change.most", { tokens: count(option.request.context_tokens) }), facts: [t("change.limitedBy", { what: w("limited", option.max_sequences_limited_by) })], steps: ["per_sequence", "total"] }} />
      </p>
      <div class="command"><code tabIndex={0}>{option.launch_command}</code><CopyButton label={t("copy")} text={() => option.launch_command} /></div>
    </li>
  );
}

/** The right side of "plan". */
export function PlanView({ answer }: { answer: Answer<PlanAnswer> }) {
  const { t, language } = useText();
  const { question } = usePage();
  if (answer.error) return <div class="answer"><Problem error={answer.error} /></div>;
  if (!answer.value) return <div class="answer"><div class="card skeleton" role="status">{t("loading")}</div></div>;
  const { options, decision_path: path, notes = [] } = answer.value;
  const best = options[0];
  return (
    <div class="answer" aria-busy={answer.stale}>
      <section class={`card verdict verdict-${best ? best.verdict.status : "does_not_fit"}`} aria-live="polite">
        <span class="verdict-mark"><Icon name={best ? ICONS[best.verdict.status] : "cross"} /></span>
        <div class="verdict-text">
          <h1>{best ? `${best.num_gpus > 1 ? `${best.num_gpus} × ` : ""}${best.gpu}` : t("plan.nothing")}</h1>
          <p>{best ? best.verdict.sentence : ""}</p>
        </div>
      </section>
      <Share json={answer.value} markdown={() => markdown("plan", { ...planBody(question), lang: language })} />
      {path.length ? (
        <ChartCard title={t("plan.path")} name="decision-path" table={() => ({ head: [t("plan.question"), t("plan.answer"), t("plan.because")], rows: path.map((step) => [step.question, step.answer, step.because]) })}>
          <Tree path={path} />
        </ChartCard>
      ) : null}
      {options.length ? <section class="card" aria-label={t("plan.options")}>
        <header class="card-head"><h2>{t("plan.options")}</h2><span class="card-aside">{count(options.length)}</span></header>
        <ol class="options">{options.slice(0, SHOWN).map((option, at) => <OptionRow option={option} at={at} />)}</ol>
      </section> : null}
      {notes.length ? <section class="card"><ul class="notes">{notes.map((note) => <li class={`note note-${note.level}`}><Icon name={note.level === "warning" ? "warn" : "info"} /><span>{note.message}</span></li>)}</ul></section> : null}
    </div>
  );
}
