/** Up to six models side by side. */
import { useId } from "preact/hooks";
import { Bars } from "../charts/bars";
import { Curve, type Line } from "../charts/curve";
import { ChartCard } from "../charts/frame";
import { sequenceBytes } from "../exact";
import { bytes, count, parameters, parseTokens, three } from "../format";
import { useText } from "../i18n";
import { markdown } from "../api";
import type { Answer } from "../state/answers";
import { compareBody, loadBody } from "../state/request";
import { MAX_MODELS } from "../state/question";
import { ask, usePage } from "../state/store";
import type { CompareAnswer, EngineRow, SizeAnswer } from "../types";
import { Combobox } from "../ui/combobox";
import { Icon } from "../ui/icons";
import { Num } from "../ui/num";
import { Slider } from "../ui/slider";
import { EngineFields, findModels } from "./ask";
import { Problem } from "./problem";
import { Share } from "./share";

/** The question of a comparison: models, and the load that they share. */
export function CompareAsk({ engines }: { engines: EngineRow[] }) {
  const { t } = useText();
  const { question } = usePage();
  const { models } = question;
  const context = question.context > 0 ? question.context : 32768;
  return (
    <form class="ask" aria-label={t("ask.title")} onSubmit={(event) => event.preventDefault()}>
      <fieldset class="group">
        <legend>{t("compare.models")}</legend>
        <ol class="models">
          {models.map((model, at) => (
            <li key={model}>
              <span class={`line-mark mark-${at}`} aria-hidden="true">{at + 1}</span>
              <span class="model-name">{model}</span>
              <button type="button" class="button bare small" aria-label={t("compare.remove", { model })} onClick={() => ask({ models: models.filter((_, other) => other !== at) })}><Icon name="close" /></button>
            </li>
          ))}
        </ol>
        {models.length < MAX_MODELS ? (
          <Combobox label={t("compare.add")} value="" placeholder="org/name" find={findModels} nothing={t("ask.model.none")}
            onChoose={(model) => !models.includes(model) && ask({ models: [...models, model] })} />
        ) : <p class="hint">{t("compare.full", { count: MAX_MODELS })}</p>}
      </fieldset>
      <fieldset class="group">
        <legend>{t("ask.group.load")}</legend>
        <Slider label={t("ask.context")} unit={t("unit.tokens")} value={context} low={256} high={Math.max(1048576, context)} grain={(value) => (value < 16384 ? 256 : 4096)} show={count} parse={parseTokens} onChange={(value) => ask({ context: value })} />
        <Slider label={t("ask.sequences")} unit={t("unit.atOnce")} value={question.sequences} low={1} high={Math.max(1024, question.sequences)} grain={(value) => (value < 64 ? 1 : 16)} show={count} parse={parseTokens} onChange={(sequences) => ask({ sequences })} />
      </fieldset>
      <fieldset class="group">
        <legend>{t("ask.group.engine")}</legend>
        <EngineFields engines={engines} />
      </fieldset>
    </form>
  );
}

function isSize(row: CompareAnswer["rows"][number]): row is SizeAnswer {
  return !("error" in row);
}

/** The answer of a comparison. */
export function CompareView({ answer }: { answer: Answer<CompareAnswer> }) {
  const { t, w, language } = useText();
  const { question } = usePage();
  const id = useId();
  if (answer.error) return <div class="answer"><Problem error={answer.error} /></div>;
  if (!answer.value) return <div class="answer"><div class="card skeleton" role="status">{question.models.length ? t("loading") : t("compare.none")}</div></div>;
  const rows = answer.value.rows;
  const one = (model: string) => ({ model, ...loadBody(question) });
  const sized = rows.filter(isSize);
  const first = sized[0];
  const end = Math.max(4096, ...sized.map((row) => row.request.context_tokens));
  const context = first?.request.context_tokens ?? end;
  const lines: Line[] = sized.map((row) => ({ tone: rows.indexOf(row), name: row.model.id, terms: row.cache.terms, at: (tokens) => BigInt(row.request.sequences) * sequenceBytes(row.cache, tokens) }));
  const smallest = sized.reduce<SizeAnswer | null>((best, row) => (best === null || row.cache.total_bytes < best.cache.total_bytes ? row : best), null);
  return (
    <div class="answer" aria-busy={answer.stale}>
      {smallest && sized.length > 1 ? (
        <section class="card verdict verdict-size" aria-live="polite">
          <div class="verdict-text">
            <h1>{smallest.model.id} <span class="on">{t("compare.least", { size: bytes(smallest.cache.total_bytes) })}</span></h1>
            <p>{t("compare.load", { sequences: count(question.sequences), tokens: count(context) })}</p>
          </div>
        </section>
      ) : null}
      <Share json={answer.value} markdown={() => markdown("compare", { ...compareBody(question), lang: language })} />
      <section class="card wide" aria-labelledby={`${id}t`}>
        <header class="card-head"><h2 id={`${id}t`}>{t("compare.title")}</h2></header>
        <div class="scroll" tabIndex={0} role="region" aria-labelledby={`${id}t`}>
          <table class="compare">
            <thead><tr><th scope="col">{t("ask.model")}</th><th scope="col">{t("compare.family")}</th><th scope="col" class="right">{t("compare.cache")}</th><th scope="col" class="right">{t("compare.ratio")}</th><th scope="col" class="right">{t("growth.perToken")}</th><th scope="col" class="right">{t("growth.fixed")}</th><th scope="col" class="right">{t("kind.weights")}</th><th scope="col" class="right">{t("weights.parameters")}</th></tr></thead>
            <tbody>
              {rows.map((row, at) =>
                isSize(row) ? (
                  <tr>
                    <th scope="row"><span class={`line-mark mark-${at}`} aria-hidden="true">{at + 1}</span><a href={`#fit?model=${encodeURIComponent(row.model.id)}`} onClick={(event) => { event.preventDefault(); ask({ view: "fit", model: row.model.id, config: "" }); }}>{row.model.id}</a>{row.notes.filter((note) => note.level === "warning").map((note) => <small class="note-warning">{note.message}</small>)}</th>
                    <td class="design">{w("family", row.cache.family)}</td>
                    <td class="right strong"><Num value={row.cache.total_bytes} topic={{ title: row.model.id, steps: ["total", "per_sequence", "group."], ask: one(row.model.id) }} /></td>
                    <td class="right">{row.comparison?.ratio != null ? `${three(row.comparison.ratio)}×` : "—"}</td>
                    <td class="right"><Num value={row.cache.growth_bytes_per_token} topic={{ title: `${row.model.id}: ${t("growth.perToken")}`, steps: ["growth", "group."], ask: one(row.model.id) }} /></td>
                    <td class="right">{row.cache.fixed_bytes_per_sequence ? <Num value={row.cache.fixed_bytes_per_sequence} topic={{ title: `${row.model.id}: ${t("growth.fixed")}`, steps: ["fixed"], ask: one(row.model.id) }} /> : "—"}</td>
                    <td class="right">{row.weights ? <Num value={row.weights.total_bytes} topic={{ title: `${row.model.id}: ${t("kind.weights")}`, steps: ["weights", "weights."], ask: one(row.model.id) }} /> : "—"}</td>
                    <td class="right">{row.weights ? parameters(row.weights.num_parameters) : "—"}</td>
                  </tr>
                ) : (
                  <tr class="row-error"><th scope="row"><span class={`line-mark mark-${at}`} aria-hidden="true">{at + 1}</span>{question.models[at] ?? ""}</th><td colSpan={7}><Icon name="warn" /> {row.error.message}{row.error.hint ? ` · ${row.error.hint}` : ""}</td></tr>
                ),
              )}
            </tbody>
          </table>
        </div>
      </section>
      {sized.length ? (
        <>
          <ChartCard title={t("compare.curve")} name="compare-curve" lead={<LineLegend lines={lines} />}
            table={() => ({
              head: [t("unit.tokens"), ...lines.map((line) => line.name)],
              rows: [1024, 4096, 16384, 32768, 65536, 131072, 262144, 524288, 1048576].filter((at) => at <= end).map((at) => [count(at), ...lines.map((line) => bytes(line.at(at)))]),
            })}>
            <Curve lines={lines} end={end} context={context} limit={null} longest={null} summary={t("compare.curve")} onPick={(tokens) => ask({ context: tokens })} />
          </ChartCard>
          <ChartCard title={t("compare.bars")} name="compare-bars"
            table={() => ({ head: [t("ask.model"), t("kind.weights"), t("kind.cache")], rows: sized.map((row) => [row.model.id, row.weights ? bytes(row.weights.total_bytes) : "—", bytes(row.cache.total_bytes)]) })}>
            <Bars limit={null} summary={t("compare.bars")} bars={sized.map((row) => ({
              label: String(rows.indexOf(row) + 1),
              capacity: null,
              segments: [{ kind: "weights" as const, bytes: row.weights?.total_bytes ?? 0 }, { kind: "cache" as const, bytes: row.cache.total_bytes }],
            }))} />
          </ChartCard>
        </>
      ) : null}
    </div>
  );
}

function LineLegend({ lines }: { lines: Line[] }) {
  return (
    <ul class="line-legend">
      {lines.map((line) => (
        <li key={line.name}>
          <svg width="28" height="10" aria-hidden="true"><line x1="1" x2="27" y1="5" y2="5" class={`line line-${line.tone}`} /></svg>
          <span>{line.name}</span>
        </li>
      ))}
    </ul>
  );
}
