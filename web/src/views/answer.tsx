/** The answer of a fit or a size, in the order of the design. */
import { Bars } from "../charts/bars";
import { ChartCard } from "../charts/frame";
import { heldBytes, sequenceBytes } from "../exact";
import { bytes, count, exactBytes, parameters, percent } from "../format";
import { markdown } from "../api";
import { useText } from "../i18n";
import type { Answer } from "../state/answers";
import { commandOf, fitBody, sizeBody } from "../state/request";
import { pinned, usePage } from "../state/store";
import type { Allocation, FitAnswer, Layer, SizeAnswer, WeightsAnswer } from "../types";
import { CopyButton } from "../ui/copy";
import type { Part } from "../ui/derivation";
import { kept } from "../ui/kept";
import { Num } from "../ui/num";
import { Assumptions } from "./assumptions";
import { Change } from "./change";
import { Growth } from "./growth";
import { Layers } from "./layers";
import { Legend } from "./legend";
import { asParts, deviceSegments, fitBars, fullest, sizeBars } from "./parts";
import { Problem } from "./problem";
import { Share } from "./share";
import { VerdictCard } from "./verdict";

/** Allocations by kind, as rows of a derivation. */
function byKind(allocations: readonly Allocation[], name: (one: Allocation) => string): Record<string, Part[]> {
  const found: Record<string, Part[]> = {};
  for (const part of allocations) (found[part.kind] ??= []).push(...asParts([part], name));
  return found;
}

const STEPS = { weights: ["weights", "weights.per_rank"], cache: ["per_rank", "rank.", "total", "group."], state: ["fixed", "group."], pool: ["blocks"] };

function FitBars({ fit, size, context, sequences }: { fit: FitAnswer; size: SizeAnswer | null; context: number; sequences: number }) {
  const { t, w } = useText();
  const held = size ? heldBytes(size.cache, sequences, size.request.data_parallel, context) : [];
  const bars = fitBars(fit, held, (rank) => (fit.devices.length > 1 ? t("bars.gpu", { rank }) : ""));
  const worst = fullest(fit);
  const label = (one: Allocation) => w("allocation", one.name);
  const limit = fit.verdict.available_bytes < (worst?.memory_bytes ?? 0) ? fit.verdict.available_bytes : null;
  const kinds = worst ? byKind(worst.allocations, label) : {};
  const segments = worst ? deviceSegments(worst, held[worst.rank] ?? null) : [];
  const whole = worst?.memory_bytes ?? segments.reduce((sum, part) => sum + part.bytes, 0);
  return (
    <ChartCard wide title={t("bars.title")} name="memory" aside={<span class="card-aside">{fit.devices.length > bars.length ? t("bars.shown", { shown: bars.length, all: fit.devices.length }) : ""}</span>}
      table={() => ({
        head: [t("bars.device"), t("parts.name"), t("parts.bytes"), t("parts.exact"), t("assume.range"), t("parts.grade")],
        rows: fit.devices.flatMap((device) => [
          ...device.allocations.map((one) => [device.place, label(one), bytes(one.bytes), exactBytes(one.bytes), `${bytes(one.low_bytes)} – ${bytes(one.high_bytes)}`, w("grade", one.grade)]),
          [device.place, w("kind", "free"), device.free_bytes === null ? "—" : bytes(device.free_bytes), device.free_bytes === null ? "—" : exactBytes(device.free_bytes), "—", "—"],
        ]),
      })}>
      <Bars bars={bars} limit={limit} summary={`${t("bars.title")}: ${fit.verdict.sentence}`} />
      <Legend segments={segments} whole={whole} free={fit.verdict.fits ? (worst?.free_bytes ?? null) : null} parts={{ ...kinds, pool: kinds.cache ?? [] }} steps={STEPS} />
    </ChartCard>
  );
}

function SizeBars({ size }: { size: SizeAnswer }) {
  const { t, w } = useText();
  const allocations = size.engine?.allocations ?? [];
  const bars = sizeBars(size, (place) => (size.cache.per_rank_bytes.length > 1 || place === "host" ? place.replace("gpu:", "GPU ") : ""));
  const first = allocations.filter((one) => one.place === allocations[0]?.place);
  const segments = bars[0]?.segments ?? [];
  const label = (one: Allocation) => w("allocation", one.name);
  return (
    <ChartCard wide title={t("bars.title.size")} name="memory"
      table={() => ({
        head: [t("bars.device"), t("parts.name"), t("parts.bytes"), t("parts.exact"), t("parts.grade")],
        rows: allocations.map((one) => [one.place, label(one), bytes(one.bytes), exactBytes(one.bytes), w("grade", one.grade)]),
      })}>
      <Bars bars={bars} limit={null} summary={t("bars.title.size")} />
      <Legend segments={segments} whole={segments.reduce((sum, part) => sum + part.bytes, 0)} free={null} parts={byKind(first, label)} steps={STEPS} />
    </ChartCard>
  );
}

/** The headline of a size: bytes of cache at the slider's load, exact before the server has answered. */
function SizeHead({ size, context, sequences, stale }: { size: SizeAnswer; context: number; sequences: number; stale: boolean }) {
  const { t, w } = useText();
  const { cache, weights } = size;
  const live = stale && !size.request.shared_prefix_tokens;
  const total = live ? BigInt(sequences) * sequenceBytes(cache, context) : cache.total_bytes;
  const theory = cache.theory_total_bytes;
  return (
    <section class="card verdict verdict-size" aria-label={t("verdict.title")}>
      <div class="verdict-text" aria-live="polite" aria-atomic="true">
        <h1><Num value={total} topic={{ title: t("size.total"), steps: ["total", "per_sequence", "group."] }} /> <span class="on">{t("size.headline", { sequences: count(sequences), tokens: count(context) })}</span></h1>
        <p>{w("family", cache.family)}{theory !== undefined && theory !== cache.total_bytes && !live ? ` · ${t("size.theory", { kept: bytes(theory), engine: w("engine", size.request.engine) })}` : ""}</p>
      </div>
      <dl class="stats">
        <div><dt>{t("growth.sequence")}</dt><dd><Num value={live ? sequenceBytes(cache, context) : cache.bytes_per_sequence} topic={{ title: t("growth.sequence"), steps: ["per_sequence"] }} /></dd></div>
        <div><dt>{t("growth.perToken")}</dt><dd><Num value={cache.growth_bytes_per_token} topic={{ title: t("growth.perToken"), steps: ["growth"] }} /></dd></div>
        {weights ? <div><dt>{t("kind.weights")}</dt><dd><Num value={weights.total_bytes} topic={{ title: t("kind.weights"), steps: ["weights", "weights."] }} /><small>{t("size.parameters", { count: parameters(weights.num_parameters) })}</small></dd></div> : null}
      </dl>
    </section>
  );
}

const Weights = kept(function Weights({ weights }: { weights: WeightsAnswer }) {
  const { t, w } = useText();
  return (
    <section class="card" aria-label={t("weights.title")}>
      <header class="card-head">
        <h2>{t("weights.title")}</h2>
        <span class="card-aside">{t("size.parameters", { count: parameters(weights.num_parameters) })}{weights.num_active_parameters !== weights.num_parameters ? ` · ${t("weights.active", { count: parameters(weights.num_active_parameters) })}` : ""}</span>
      </header>
      <div class="scroll" tabIndex={0} role="region" aria-label={t("weights.title")}>
        <table>
          <thead><tr><th scope="col">{t("parts.name")}</th><th scope="col" class="right">{t("weights.parameters")}</th><th scope="col">{t("weights.dtype")}</th><th scope="col" class="right">{t("parts.bytes")}</th><th scope="col" class="right">{t("weights.share")}</th></tr></thead>
          <tbody>
            {weights.by_part.map((part) => (
              <tr>
                <th scope="row">{w("part", part.part)}</th>
                <td class="right">{parameters(part.num_parameters)}</td>
                <td>{part.dtype}</td>
                <td class="right"><Num value={part.bytes} topic={{ title: `${w("part", part.part)}, ${part.dtype}`, steps: [`weights.${part.part}.${part.dtype}`, `weights.${part.part}`] }} /></td>
                <td class="right quiet">{percent(part.bytes, weights.total_bytes)}</td>
              </tr>
            ))}
          </tbody>
          <tfoot><tr><th scope="row">{t("weights.all")}</th><td class="right">{parameters(weights.num_parameters)}</td><td /><td class="right"><Num value={weights.total_bytes} topic={{ title: t("weights.all"), steps: ["weights"] }} /></td><td /></tr></tfoot>
        </table>
      </div>
    </section>
  );
});

/** The card with the command that starts the engine, and the one that asks this question. */
function Commands({ launch, fits = true }: { launch: string | null; fits?: boolean }) {
  const { t } = useText();
  const { question } = usePage();
  const own = commandOf(pinned(question));
  const block = (title: string, text: string) => (
    <div class="command">
      <span class="command-title">{title}</span>
      <code tabIndex={0}>{text}</code>
      <CopyButton label={t("copy")} text={() => text} />
    </div>
  );
  return (
    <section class="card" aria-label={t("command.title")}>
      <header class="card-head"><h2>{t("command.title")}</h2></header>
      {launch ? block(t(fits ? "command.launch" : "command.launch.fails"), launch) : null}
      {block(t("command.own"), own)}
    </section>
  );
}

const NO_LAYERS: readonly Layer[] = [];

function LayersOf({ size }: { size: SizeAnswer }) {
  return <Layers layers={size.cache.layers ?? NO_LAYERS} groups={size.cache.groups} numLayers={size.model.num_layers} />;
}

interface Props {
  fit: Answer<FitAnswer>;
  size: Answer<SizeAnswer>;
  context: number;
}

/** The right side of "fit". */
export function AnswerView({ fit, size, context }: Props) {
  const { t, w, language } = useText();
  const { question } = usePage();
  const wantsFit = question.target !== "size";
  const main = wantsFit ? fit : size;
  const sized = size.value;
  if (main.error) return <div class="answer"><Problem error={main.error} />{wantsFit && sized ? <SizedOnly size={sized} context={context} stale={size.stale} /> : null}</div>;
  if (!main.value) return <div class="answer"><div class="card skeleton" role="status">{t("loading")}</div></div>;
  if (!wantsFit) return sized ? <div class="answer"><SizedOnly size={sized} context={context} stale={size.stale} share /></div> : null;
  const answer = fit.value;
  if (!answer) return null;
  const worst = fullest(answer);
  const label = (one: Allocation) => w("allocation", one.name);
  return (
    <div class="answer" aria-busy={fit.stale}>
      <VerdictCard fit={answer} stale={fit.stale} parts={worst ? asParts(worst.allocations, label) : []} />
      <Share json={answer} markdown={() => markdown("fit", { ...fitBody(question), lang: language })} />
      <FitBars fit={answer} size={sized} context={context} sequences={question.sequences} />
      {sized ? <Growth size={sized} fit={answer} context={context} sequences={question.sequences} /> : null}
      <Change fit={answer} />
      <Assumptions allocations={worst?.allocations ?? []} request={answer.request} notes={answer.notes} />
      <Commands launch={answer.launch_command} fits={answer.verdict.status !== "does_not_fit"} />
      {sized ? <><LayersOf size={sized} />{sized.weights ? <Weights weights={sized.weights} /> : null}</> : null}
    </div>
  );
}

function SizedOnly({ size, context, stale, share = false }: { size: SizeAnswer; context: number; stale: boolean; share?: boolean }) {
  const { language } = useText();
  const { question } = usePage();
  return (
    <>
      <SizeHead size={size} context={context} sequences={question.sequences} stale={stale} />
      {share ? <Share json={size} markdown={() => markdown("size", { ...sizeBody(question), lang: language })} /> : null}
      <SizeBars size={size} />
      <Growth size={size} fit={null} context={context} sequences={question.sequences} />
      <Assumptions allocations={size.engine?.allocations ?? []} request={size.request} notes={size.notes} />
      <Commands launch={null} />
      <LayersOf size={size} />
      {size.weights ? <Weights weights={size.weights} /> : null}
    </>
  );
}
