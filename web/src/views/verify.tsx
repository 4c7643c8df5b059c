/** An engine's start-up log against the prediction, line by line. */
import { useEffect, useState } from "preact/hooks";
import { bytes, three, count, signedPercent } from "../format";
import { useText } from "../i18n";
import { markdown } from "../api";
import { useAnswer } from "../state/answers";
import { ask, usePage } from "../state/store";
import type { VerifyAnswer, VerifyLine } from "../types";
import { Icon } from "../ui/icons";
import { Num } from "../ui/num";
import { currentLog, onLog, takeLog } from "./verify_log";
import { Problem } from "./problem";
import { Share } from "./share";
import { takeFile } from "./paste";

/** Longest log that is sent. */
const MAX_LOG = 8 * 1024 * 1024;

function useLog(): { text: string; name: string } {
  const [log, setLog] = useState(currentLog());
  useEffect(() => onLog(() => setLog(currentLog())), []);
  return log;
}

function figure(value: number | null, unit: string): string {
  if (value === null) return "—";
  if (unit === "B") return bytes(value);
  const text = Number.isInteger(value) ? count(value) : three(value);
  return unit && unit !== "tokens" ? `${text} ${unit}` : text;
}

const MARKS: Record<string, string> = { agrees: "=", in_range: "≈", off: "≠", unknown: "?" };

/** The question: a log, and what it may leave open. */
export function VerifyAsk() {
  const { t } = useText();
  const { question } = usePage();
  const log = useLog();
  return (
    <form class="ask" aria-label={t("ask.title")} onSubmit={(event) => event.preventDefault()}>
      <fieldset class="group">
        <legend>{t("verify.log")}</legend>
        <div class="field">
          <label for="log">{t("verify.paste")}</label>
          <textarea id="log" class="text mono" rows={14} spellcheck={false} value={log.text.slice(0, 200000)} placeholder={t("verify.example")} onInput={(event) => takeLog(event.currentTarget.value, "")} />
        </div>
        <div class="chip-row">
          <label class="button small file-button"><Icon name="file" /> {t("verify.file")}
            <input type="file" accept=".log,.txt,text/plain" onChange={(event) => { const chosen = event.currentTarget.files?.[0]; if (chosen) takeFile(chosen); }} />
          </label>
          {log.text ? <button type="button" class="button small" onClick={() => takeLog("", "")}>{t("verify.clear")}</button> : null}
        </div>
        <p class="hint">{t("verify.private")}</p>
      </fieldset>
      <fieldset class="group">
        <legend>{t("verify.gaps")}</legend>
        <div class="pair">
          <div class="field"><label for="vgpu">{t("ask.gpu")}</label><input id="vgpu" class="text" value={question.logGpu} placeholder={t("verify.fromLog")} onChange={(event) => ask({ logGpu: event.currentTarget.value.trim() })} /></div>
          <div class="field"><label for="vmodel">{t("ask.model")}</label><input id="vmodel" class="text" value={question.logModel} placeholder={t("verify.fromLog")} onChange={(event) => ask({ logModel: event.currentTarget.value.trim() })} /></div>
        </div>
      </fieldset>
    </form>
  );
}

function Row({ line }: { line: VerifyLine }) {
  const { w } = useText();
  const error = line.error_fraction;
  return (
    <tr class={`verify-${line.verdict}`}>
      <th scope="row">{w("quantity", line.quantity)}<small>{line.because}</small></th>
      <td class="right strong">{figure(line.measured, line.unit)}</td>
      <td class="right"><Num value={line.predicted ?? 0} text={figure(line.predicted, line.unit)} topic={{ title: w("quantity", line.quantity), facts: [line.because ?? ""].filter(Boolean), ask: null }} />{line.predicted_low !== null && line.predicted_high !== null ? <small>{figure(line.predicted_low, line.unit)} – {figure(line.predicted_high, line.unit)}</small> : null}</td>
      <td class="right">{error === null ? "—" : signedPercent(error)}</td>
      <td><span class={`grade verdict-tag-${line.verdict}`}><span aria-hidden="true">{MARKS[line.verdict] ?? "·"}</span>{w("agreement", line.verdict)}</span></td>
    </tr>
  );
}

function said(item: unknown): string {
  return typeof item === "string" ? item : String((item as { message?: string }).message ?? JSON.stringify(item));
}

/** The answer. */
export function VerifyView() {
  const { t, language } = useText();
  const { question } = usePage();
  const log = useLog();
  const body = log.text.trim() ? { log: log.text.slice(0, MAX_LOG), lang: language, ...(question.logGpu ? { gpu: question.logGpu } : {}), ...(question.logModel ? { model: question.logModel } : {}) } : null;
  const answer = useAnswer<VerifyAnswer>("verify", body);
  if (!body) return <div class="answer"><div class="card empty"><h1>{t("verify.title")}</h1><p>{t("verify.intro")}</p></div></div>;
  if (answer.error) return <div class="answer"><Problem error={answer.error} /></div>;
  if (!answer.value) return <div class="answer"><div class="card skeleton" role="status">{t("loading")}</div></div>;
  const { engine, lines, advice, failures, notes } = answer.value;
  const agreeing = lines.filter((line) => line.verdict === "agrees" || line.verdict === "in_range").length;
  return (
    <div class="answer" aria-busy={answer.stale}>
      <section class={`card verdict ${agreeing === lines.length && lines.length ? "verdict-fits" : "verdict-tight"}`} aria-live="polite">
        <span class="verdict-mark"><Icon name={agreeing === lines.length && lines.length ? "check" : "tight"} /></span>
        <div class="verdict-text">
          <h1>{t("verify.headline", { agreeing, all: lines.length })}</h1>
          <p>{[`${engine.name} ${engine.version ?? ""}`.trim(), engine.model_in_log ?? engine.model, engine.gpu, engine.engine_args].filter(Boolean).join(" · ")}</p>
        </div>
      </section>
      <Share json={answer.value} markdown={() => markdown("verify", body)} />
      {lines.length ? (
        <section class="card wide" aria-label={t("verify.lines")}>
          <header class="card-head"><h2>{t("verify.lines")}</h2></header>
          <div class="scroll" tabIndex={0} role="region" aria-label={t("verify.lines")}>
            <table class="verify">
              <thead><tr><th scope="col">{t("verify.quantity")}</th><th scope="col" class="right">{t("verify.measured")}</th><th scope="col" class="right">{t("verify.predicted")}</th><th scope="col" class="right">{t("verify.difference")}</th><th scope="col">{t("verify.verdict")}</th></tr></thead>
              <tbody>{lines.map((line) => <Row line={line} />)}</tbody>
            </table>
          </div>
        </section>
      ) : null}
      {[...failures, ...advice, ...notes].length ? (
        <section class="card" aria-label={t("verify.advice")}>
          <header class="card-head"><h2>{t("verify.advice")}</h2></header>
          <ul class="notes">{[...failures, ...advice, ...notes].map((item) => <li class="note"><Icon name="info" /><span>{said(item)}</span></li>)}</ul>
        </section>
      ) : null}
    </div>
  );
}
