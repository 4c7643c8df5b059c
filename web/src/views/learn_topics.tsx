/** Mechanisms, activations, FlashAttention, paging, quantised caches: one drawing each, and the library's own text. */
import { useEffect, useState } from "preact/hooks";
import { ChartCard, TableTwin } from "../charts/frame";
import { BarList, Shares, type Row } from "../charts/small";
import { bytes, count, percent, three } from "../format";
import { useText } from "../i18n";
import { Exercises, type Exercise } from "./learn_exercises";

type Figures = Record<string, number | string | null>;

/** What is read of the objects of the topics. */
export interface TopicAnswer {
  schema: string;
  drawn?: string;
  groups?: { layers: number[]; prefill: { activations: { name: string; bytes: number; fate: string }[] } }[];
  mechanisms?: { word: string; num_tokens: number; held_bytes: number; growth_bytes_per_token: number; fixed_bytes: number }[];
  models?: { model: string; cache_bytes: number; cache_ratio: number | null; cache_bytes_per_token: number }[];
  request?: Figures;
  layer?: Record<string, number>;
  stages?: { code: string; dimensions: number[]; bytes: number }[];
  exercises?: Exercise[];
  schemes?: ({ scheme: string; block_tokens: number | null } & Record<string, number | string | null>)[];
  samples?: { name: string; formats: { name: string; scaling: string; counted_bytes: number; bf16_ratio: number; key_error: number; value_error: number; output_error_both: number }[] }[];
}

/** Topics whose text says nothing that the drawing does not. */
const WITHOUT_TEXT = new Set(["pipeline", "exercises"]);
const FATES = ["cached", "passed_on", "residual", "discarded"];
const PAGED = ["filled", "reserved", "internal", "external", "free"];

function Activations({ answer }: { answer: TopicAnswer }) {
  const { t, w } = useText();
  const group = answer.groups?.[0];
  if (!group) return null;
  const rows: Row[] = group.prefill.activations.map((one) => ({ label: w("stage", one.name), value: one.bytes, text: `${bytes(one.bytes)} · ${w("fate", one.fate)}`, tone: FATES.indexOf(one.fate) }));
  return (
    <ChartCard wide title={t("learn.activations", { layers: count(group.layers.length) })} name="activations" table={() => ({ head: [t("parts.name"), t("parts.bytes"), t("learn.fate")], rows: group.prefill.activations.map((one) => [w("stage", one.name), bytes(one.bytes), w("fate", one.fate)]) })}>
      <BarList rows={rows} summary={t("learn.activations", { layers: group.layers.length })} />
    </ChartCard>
  );
}

function Mechanisms({ answer }: { answer: TopicAnswer }) {
  const { t, w } = useText();
  const { mechanisms = [], models = [] } = answer;
  return (
    <>
      <ChartCard title={t("learn.mechanisms", { tokens: count(mechanisms[0]?.num_tokens ?? 0) })} name="mechanisms" table={() => ({ head: [t("parts.name"), t("parts.bytes"), t("growth.perToken"), t("growth.fixed")], rows: mechanisms.map((one) => [w("mechanism", one.word), bytes(one.held_bytes), bytes(one.growth_bytes_per_token), bytes(one.fixed_bytes)]) })}>
        <BarList summary={t("learn.mechanisms", { tokens: "" })} rows={mechanisms.map((one) => ({ label: w("mechanism", one.word), value: one.held_bytes, text: bytes(one.held_bytes), tone: one.fixed_bytes > 0 ? 2 : 0 }))} />
      </ChartCard>
      <ChartCard title={t("learn.models", { tokens: count(Number(answer.request?.context_tokens ?? 0)) })} name="models" table={() => ({ head: [t("ask.model"), t("parts.bytes"), t("growth.perToken")], rows: models.map((one) => [one.model, bytes(one.cache_bytes), bytes(one.cache_bytes_per_token)]) })}>
        <BarList summary={t("learn.models", { tokens: "" })} rows={models.map((one) => ({ label: one.model.split("/").at(-1) ?? one.model, value: one.cache_bytes, text: `${bytes(one.cache_bytes)}${one.cache_ratio === null ? "" : ` · ${three(one.cache_ratio)}×`}`, tone: 0 }))} />
      </ChartCard>
    </>
  );
}

function Flash({ answer }: { answer: TopicAnswer }) {
  const { t, w } = useText();
  const layer = answer.layer ?? {};
  const row = (name: string, tone: number): Row => ({ label: w("traffic", name), value: layer[name] ?? 0, text: bytes(layer[name] ?? 0), tone });
  const prefill = [row("plain_bytes", 1), row("tiled_bytes", 0), row("tiled_causal_bytes", 0)];
  const decode = [row("decode_plain_bytes", 1), row("decode_tiled_bytes", 0)];
  const twin = (rows: Row[]) => () => ({ head: [t("parts.name"), t("parts.bytes")], rows: rows.map((one) => [one.label, one.text]) });
  return (
    <>
      <ChartCard title={t("learn.flash")} name="flash-prefill" table={twin(prefill)}><BarList rows={prefill} summary={t("learn.flash")} /></ChartCard>
      <ChartCard title={t("learn.flash.decode")} name="flash-decode" table={twin(decode)}><BarList rows={decode} summary={t("learn.flash.decode")} /></ChartCard>
    </>
  );
}

function Paged({ answer }: { answer: TopicAnswer }) {
  const { t, w } = useText();
  const schemes = answer.schemes ?? [];
  const share = (one: (typeof schemes)[number], name: string) => Number(one[`${name}_fraction`] ?? 0);
  const label = (one: (typeof schemes)[number]) => (one.block_tokens === null ? w("scheme", one.scheme) : t("learn.blocks", { tokens: one.block_tokens }));
  return (
    <ChartCard wide title={t("learn.paged")} name="paged" lead={<ul class="line-legend">{PAGED.map((name, tone) => <li><svg width="14" height="14" aria-hidden="true"><rect width="14" height="14" rx="3" class={`tone tone-${tone}`} /></svg>{w("paged", name)}</li>)}</ul>}
      table={() => ({ head: [t("learn.scheme"), ...PAGED.map((name) => w("paged", name))], rows: schemes.map((one) => [label(one), ...PAGED.map((name) => percent(share(one, name), 1))]) })}>
      <Shares summary={t("learn.paged")} wholes={schemes.map((one) => ({ label: label(one), parts: PAGED.map((name, tone) => ({ name: w("paged", name), share: share(one, name), tone })) }))} />
    </ChartCard>
  );
}

function Pipeline({ answer }: { answer: TopicAnswer }) {
  const { w } = useText();
  const [address, setAddress] = useState("");
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([answer.drawn ?? ""], { type: "image/svg+xml" }));
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [answer.drawn]);
  return (
    <section class="card wide" aria-label={w("topic", "pipeline")}>
      {address ? <img class="pipeline" src={address} alt={`${w("topic", "pipeline")}: ${answer.stages?.map((stage) => `${w("stage", stage.code)} ${stage.dimensions.join(" × ")}`).join("; ") ?? ""}`} /> : null}
      <TableTwin title={w("topic", "pipeline")} table={() => ({ head: [w("stage", "stage"), "", w("stage", "size")], rows: (answer.stages ?? []).map((stage) => [w("stage", stage.code), stage.dimensions.join(" × "), bytes(stage.bytes)]) })} />
    </section>
  );
}

function Quantised({ answer }: { answer: TopicAnswer }) {
  const { t, w } = useText();
  return (
    <>
      {(answer.samples ?? []).map((sample) => (
        <ChartCard title={`${t("learn.quantised")}: ${w("sample", sample.name)}`} name={`quantised-${sample.name}`}
          table={() => ({ head: [t("ask.kv"), t("parts.bytes"), t("learn.errorK"), t("learn.errorV"), t("learn.errorOut")], rows: sample.formats.map((one) => [`${one.name} ${one.scaling === "none" ? "" : one.scaling}`, bytes(one.counted_bytes), percent(one.key_error, 1), percent(one.value_error, 1), percent(one.output_error_both, 1)]) })}>
          <BarList summary={t("learn.quantised")} rows={sample.formats.map((one) => ({ label: `${one.name}${one.scaling === "none" ? "" : ` ${one.scaling}`}`, value: one.counted_bytes, text: `${three(one.bf16_ratio)}× · ${percent(one.output_error_both, 1)}`, tone: 0 }))} />
        </ChartCard>
      ))}
    </>
  );
}

const DRAWINGS: Record<string, (props: { answer: TopicAnswer }) => preact.JSX.Element | null> = { activations: Activations, mechanisms: Mechanisms, flash: Flash, paged: Paged, quantised: Quantised, pipeline: Pipeline, exercises: ({ answer }) => <Exercises exercises={answer.exercises ?? []} /> };

/** A topic: its drawing where there is one, and what the command prints. */
export function TopicView({ topic, answer }: { topic: string; answer: TopicAnswer }) {
  const { t, w } = useText();
  const Drawing = DRAWINGS[topic];
  return (
    <>
      <header class="topic-head wide"><h1>{w("topic", topic)}</h1></header>
      {Drawing ? <Drawing answer={answer} /> : null}
      {answer.drawn && !WITHOUT_TEXT.has(topic) ? (
        <section class="card wide" aria-label={t("learn.drawn")}>
          <header class="card-head"><h2>{t("learn.drawn")}</h2></header>
          <pre class="drawn scroll" tabIndex={0}>{answer.drawn}</pre>
        </section>
      ) : null}
    </>
  );
}
