/** The drawer that shows where a number comes from: the library's steps, with the numbers put in. */
import { useEffect, useRef } from "preact/hooks";
import { bytes, count, exactBytes } from "../format";
import { useText } from "../i18n";
import { useAnswer } from "../state/answers";
import { sizeBody } from "../state/request";
import { usePage } from "../state/store";
import type { ExplainAnswer, ExplainStep } from "../types";
import { closeDerivation, useTopic, type Part } from "../ui/derivation";
import { Formula } from "../ui/formula";
import { Icon } from "../ui/icons";
import { GradeMark } from "./grade";
import { Problem } from "./problem";

/** One step: what, formula, numbers put in, what each symbol is and which field of the config says so. */
export function Step({ step }: { step: ExplainStep }) {
  const { t } = useText();
  const symbols = Object.entries(step.symbols);
  return (
    <article class="step">
      <h3>{step.title}{step.value_bytes !== null ? <span class="step-value" title={exactBytes(step.value_bytes)}>{bytes(step.value_bytes)}</span> : null}</h3>
      {step.text ? <p>{step.text}</p> : null}
      {step.formula ? <p class="formula-line"><Formula text={step.formula} /></p> : null}
      {step.with_numbers ? <p class="formula-line numbers"><Formula text={step.with_numbers} numbers /></p> : null}
      {symbols.length ? (
        <table class="symbols">
          <thead class="offscreen"><tr><th>{t("step.symbol")}</th><th>{t("step.value")}</th><th>{t("step.meaning")}</th></tr></thead>
          <tbody>
            {symbols.map(([name, value]) => (
              <tr>
                <th scope="row"><Formula text={name} /></th>
                <td class="right">{typeof value === "number" ? count(value) : String(value)}</td>
                <td>{step.symbol_meanings[name] ?? ""}{step.symbol_paths[name] ? <code>{step.symbol_paths[name]}</code> : null}</td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : null}
      {step.definitions.length ? (
        <table class="symbols">
          <caption>{t("step.where")}</caption>
          <tbody>
            {step.definitions.map((one) => (
              <tr>
                <th scope="row"><Formula text={one.symbol} /></th>
                <td><Formula text={one.formula} /><small>{one.with_numbers}</small></td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : null}
      {step.source ? <p class="source">{t("step.source")} {step.source}</p> : null}
    </article>
  );
}

/** What a number is the sum of, each part with its reason, grade and range. */
export function Parts({ parts }: { parts: Part[] }) {
  const { t } = useText();
  return (
    <table class="parts">
      <thead><tr><th scope="col">{t("parts.name")}</th><th scope="col" class="right">{t("parts.bytes")}</th><th scope="col">{t("parts.grade")}</th></tr></thead>
      <tbody>
        {parts.map((part) => (
          <tr>
            <th scope="row">{part.name}{part.because ? <small>{part.because}</small> : null}</th>
            <td class="right" title={exactBytes(part.bytes)}>
              {bytes(part.bytes)}
              {part.low !== undefined && part.high !== undefined && part.low !== part.high ? <small>{bytes(part.low)} – {bytes(part.high)}</small> : null}
            </td>
            <td>{part.grade ? <GradeMark grade={part.grade} /> : null}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function matches(id: string, wanted: readonly string[]): boolean {
  return wanted.some((name) => (name.endsWith(".") ? id.startsWith(name) : id === name));
}

/** The drawer; closed while no number is asked about. */
export function Drawer() {
  const { t, language } = useText();
  const { question } = usePage();
  const topic = useTopic();
  const place = useRef<HTMLDialogElement>(null);
  const explain = useAnswer<ExplainAnswer>("explain", topic && topic.ask !== null ? { ...(topic.ask ?? sizeBody(question)), lang: language } : null);
  useEffect(() => {
    const dialog = place.current;
    if (!dialog) return;
    if (topic && !dialog.open) dialog.showModal();
    if (!topic && dialog.open) dialog.close();
  }, [topic]);
  const wanted = topic?.steps ?? [];
  const steps = explain.value?.steps ?? [];
  const own = steps.filter((step) => matches(step.id, wanted));
  return (
    <dialog ref={place} class="drawer" aria-label={t("drawer.title")} onCancel={(event) => { event.preventDefault(); closeDerivation(); }}
      onClick={(event) => event.target === place.current && closeDerivation()}>
      {topic ? (
        <div class="drawer-body">
          <header>
            <div>
              <p class="over">{topic.title}</p>
              <p class="drawer-value">{topic.value}</p>
              {topic.exact ? <p class="drawer-exact">{topic.exact}</p> : null}
            </div>
            <button type="button" class="button bare" aria-label={t("close")} onClick={closeDerivation}><Icon name="close" /></button>
          </header>
          {topic.facts?.map((fact) => <p class="fact">{fact}</p>)}
          {topic.parts?.length ? <Parts parts={topic.parts} /> : null}
          {own.map((step) => <Step step={step} />)}
          {explain.error ? <Problem error={explain.error} /> : null}
          {topic.ask === null ? null : steps.length ? (
            <details class="all-steps">
              <summary>{t("drawer.all", { count: steps.length })}</summary>
              {steps.map((step) => <Step step={step} />)}
            </details>
          ) : explain.error ? null : <p class="hint">{t("loading")}</p>}
        </div>
      ) : null}
    </dialog>
  );
}
