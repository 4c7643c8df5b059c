/** A text walked through a small model, step by step: every number was computed by the library just now. */
import type { ComponentChildren } from "preact";
import { BarList, Heat } from "../charts/small";
import { TableTwin } from "../charts/frame";
import { bytes, count, exactBytes, three } from "../format";
import { useText, type Text } from "../i18n";
import { ask, usePage } from "../state/store";
import { Icon } from "../ui/icons";

interface Vector {
  width: number;
  first: number[];
  length: number;
}

interface Guess {
  id: number;
  text: string;
  logit?: number;
  share: number;
}

/** The object of `learn walk`. */
export interface Walk {
  schema: string;
  model: { id: string; num_layers: number; hidden: number; query_heads: number; kv_heads: number; head_width: number; vocabulary: number };
  tokens: { position: number; id: number; text: string; row: Vector }[];
  embedding: { rows: number; columns: number };
  projections: { matrices: { name: string; rows: number; columns: number; numbers: number }[]; query: Vector; key: Vector; value: Vector };
  attention: {
    head: number;
    divisor: number;
    looks: { position: number; product: number; score: number; share: number; value: Vector }[];
    taken: Vector;
    shares_by_head: number[][];
    shares_by_token: number[][];
  };
  feed_forward: ({ name: string } & Vector)[];
  depths: { layer: number; key: Vector; output: Vector; likeness: number; guess: Guess }[];
  next: Guess[];
  generation: {
    prompt_tokens: number;
    steps: { tokens: number; chosen: Guess; held_bytes: number; size_bytes: number; rows: number; rows_without_cache: number; read_bytes: number }[];
    rows: number;
    rows_without_cache: number;
    cache_dtype: string;
  };
}

/** A token as people can see it. */
export function shown(text: string): string {
  return text.replace(/\n/g, "⏎").replace(/ /g, "␣") || "∅";
}

function Numbers({ vector }: { vector: Vector }) {
  return <span class="numbers">{vector.first.map((value) => <span>{`${value < 0 ? "\u2212" : "+"}${Math.abs(value).toFixed(3)}`}</span>)}<span aria-hidden="true">…</span></span>;
}

function Tokens({ walk }: { walk: Walk }) {
  const { t } = useText();
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={t("walk.1")}>
      <table class="plain">
        <thead><tr><th scope="col">{t("walk.token")}</th><th scope="col" class="right">{t("walk.position")}</th><th scope="col" class="right">{t("walk.id")}</th><th scope="col">{t("walk.row", { rows: count(walk.embedding.rows), columns: count(walk.embedding.columns) })}</th></tr></thead>
        <tbody>{walk.tokens.map((token) => <tr><th scope="row"><span class="token">{shown(token.text)}</span></th><td class="right">{token.position}</td><td class="right">{token.id}</td><td><Numbers vector={token.row} /></td></tr>)}</tbody>
      </table>
    </div>
  );
}

function Projections({ walk }: { walk: Walk }) {
  const { t } = useText();
  const { matrices, query, key, value } = walk.projections;
  const vectors: [string, Vector, number][] = [["Q", query, walk.model.query_heads], ["K", key, walk.model.kv_heads], ["V", value, walk.model.kv_heads]];
  return (
    <>
      <BarList summary={t("walk.2")} rows={matrices.map((one, at) => ({ label: `W_${"QKV"[at] ?? at}`, value: one.numbers, text: `${one.rows} × ${one.columns} = ${count(one.numbers)}`, tone: at }))} />
      <div class="scroll" tabIndex={0} role="region" aria-label={t("walk.2")}>
        <table class="plain"><tbody>{vectors.map(([name, vector, heads]) => <tr><th scope="row"><b>{name}</b></th><td class="right">{t("walk.heads", { heads, width: walk.model.head_width })}</td><td><Numbers vector={vector} /></td></tr>)}</tbody></table>
      </div>
    </>
  );
}

function Attention({ walk }: { walk: Walk }) {
  const { t } = useText();
  const names = walk.tokens.map((token) => shown(token.text));
  const { attention } = walk;
  return (
    <>
      <div class="scroll" tabIndex={0} role="region" aria-label={t("walk.3")}>
        <table class="plain">
          <thead><tr><th scope="col">{t("walk.token")}</th><th scope="col" class="right">Q·K</th><th scope="col" class="right">÷ {three(attention.divisor)}</th><th scope="col" class="right">{t("walk.share")}</th><th scope="col">V</th></tr></thead>
          <tbody>
            {attention.looks.map((look) => <tr><th scope="row"><span class="token">{names[look.position]}</span></th><td class="right">{look.product.toFixed(2)}</td><td class="right">{look.score.toFixed(2)}</td><td class="right strong">{(100 * look.share).toFixed(1)} %</td><td><Numbers vector={look.value} /></td></tr>)}
          </tbody>
          <tfoot><tr><th scope="row">{t("walk.taken")}</th><td /><td /><td class="right">100 %</td><td><Numbers vector={attention.taken} /></td></tr></tfoot>
        </table>
      </div>
      <div class="two">
        <figure><figcaption>{t("walk.byHead")}</figcaption><Heat summary={t("walk.byHead")} columns={names} rows={attention.shares_by_head.map((_, at) => `${at}`)} shares={attention.shares_by_head} /></figure>
        <figure><figcaption>{t("walk.byToken")}</figcaption><Heat summary={t("walk.byToken")} columns={names} rows={names} shares={attention.shares_by_token} /></figure>
      </div>
    </>
  );
}

function FeedForward({ walk }: { walk: Walk }) {
  const { t, w } = useText();
  return <BarList summary={t("walk.4")} rows={walk.feed_forward.map((stage) => ({ label: w("stage", stage.name), value: stage.width, text: `${stage.width}`, tone: stage.width > walk.model.hidden * 1.5 ? 1 : 0 }))} />;
}

function Next({ walk }: { walk: Walk }) {
  const { t } = useText();
  return <BarList summary={t("walk.5")} high={1} rows={walk.next.map((guess) => ({ label: shown(guess.text), value: guess.share, text: `${(100 * guess.share).toFixed(1)} %`, tone: 0 }))} />;
}

function Depths({ walk }: { walk: Walk }) {
  const { t } = useText();
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={t("walk.6")}>
      <table class="plain">
        <thead><tr><th scope="col">{t("walk.layer")}</th><th scope="col">{t("walk.keyBegins")}</th><th scope="col">{t("walk.outputBegins")}</th><th scope="col" class="right">{t("walk.likeness")}</th><th scope="col">{t("walk.guess")}</th></tr></thead>
        <tbody>{walk.depths.map((depth) => <tr><th scope="row">{depth.layer}</th><td><Numbers vector={depth.key} /></td><td><Numbers vector={depth.output} /></td><td class="right">{depth.likeness.toFixed(2)}</td><td><span class="token">{shown(depth.guess.text)}</span> {(100 * depth.guess.share).toFixed(1)} %</td></tr>)}</tbody>
      </table>
    </div>
  );
}

function Generation({ walk }: { walk: Walk }) {
  const { t } = useText();
  const { steps, rows, rows_without_cache: without } = walk.generation;
  return (
    <>
      <p class="generated">{walk.tokens.map((token) => <span class="token">{shown(token.text)}</span>)}{steps.map((step) => <span class="token new">{shown(step.chosen.text)}</span>)}</p>
      <div class="two">
        <figure><figcaption>{t("walk.held", { dtype: walk.generation.cache_dtype })}</figcaption><BarList summary={t("walk.held", { dtype: "" })} rows={steps.map((step) => ({ label: shown(step.chosen.text), value: step.held_bytes, text: bytes(step.held_bytes), tone: 0 }))} /></figure>
        <figure><figcaption>{t("walk.rows")}</figcaption><BarList summary={t("walk.rows")} rows={[{ label: t("walk.with"), value: rows, text: count(rows), tone: 0 }, { label: t("walk.without"), value: without, text: count(without), tone: 1 }]} /></figure>
      </div>
      <TableTwin title={t("walk.7")} table={() => ({ head: [t("walk.chosen"), t("walk.held", { dtype: "" }), "kvgauge size", t("walk.with"), t("walk.without")], rows: steps.map((step) => [`${shown(step.chosen.text)} ${(100 * step.chosen.share).toFixed(1)} %`, exactBytes(step.held_bytes), exactBytes(step.size_bytes), step.rows, step.rows_without_cache]) })} />
    </>
  );
}

const STEPS: ((props: { walk: Walk }) => ComponentChildren)[] = [Tokens, Projections, Attention, FeedForward, Next, Depths, Generation];

/** The walk: one step at a time, the steps in a row above. */
export function WalkView({ walk }: { walk: Walk }) {
  const { t } = useText();
  const { question } = usePage();
  const at = Math.min(question.step, STEPS.length - 1);
  const Body = STEPS[at] ?? Tokens;
  const title = (step: number) => t(`walk.${step + 1}` as Text);
  return (
    <>
      <section class="card wide walk" aria-label={t("topic.walk")}>
        <ol class="steps" aria-label={t("walk.steps")}>
          {STEPS.map((_, step) => (
            <li><button type="button" aria-current={step === at ? "step" : undefined} onClick={() => ask({ step })}><span>{step + 1}</span>{title(step)}</button></li>
          ))}
        </ol>
        <div class="walk-body" aria-live="polite">
          <h1>{title(at)}</h1>
          <p class="lead">{t(`walk.${at + 1}.text` as Text, { layers: walk.model.num_layers, vocabulary: count(walk.model.vocabulary), last: shown(walk.tokens.at(-1)?.text ?? "") })}</p>
          <Body walk={walk} />
        </div>
        <div class="walk-moves">
          <button type="button" class="button" disabled={at === 0} onClick={() => ask({ step: at - 1 })}>{t("walk.back")}</button>
          <button type="button" class="button primary" disabled={at === STEPS.length - 1} onClick={() => ask({ step: at + 1 })}>{t("walk.on")} <Icon name="arrow" /></button>
        </div>
      </section>
    </>
  );
}
