/** The verdict: one word, the inequality, the slack. */
import { useEffect, useRef, useState } from "preact/hooks";
import { bytes } from "../format";
import { useText } from "../i18n";
import type { FitAnswer } from "../types";
import type { Part } from "../ui/derivation";
import { Icon } from "../ui/icons";
import { Num } from "../ui/num";

/** Whether an element is on the screen. */
function useSeen<E extends Element>(): [{ current: E | null }, boolean] {
  const place = useRef<E>(null);
  const [isSeen, setSeen] = useState(true);
  useEffect(() => {
    if (!place.current) return;
    const watch = new IntersectionObserver(([entry]) => entry && setSeen(entry.isIntersecting));
    watch.observe(place.current);
    return () => watch.disconnect();
  }, []);
  return [place, isSeen];
}

const ICONS = { fits: "check", tight: "tight", does_not_fit: "cross" } as const;

/** The first card of a fit. */
export function VerdictCard({ fit, stale, parts }: { fit: FitAnswer; stale: boolean; parts: Part[] }) {
  const { t, w } = useText();
  const { verdict } = fit;
  const slack = verdict.slack_bytes;
  const on = fit.request.gpu ? `${(fit.request.num_gpus ?? 1) > 1 ? `${fit.request.num_gpus} × ` : ""}${fit.request.gpu}` : "";
  const [card, isSeen] = useSeen<HTMLElement>();
  return (
    <>
    {isSeen ? null : (
      <button type="button" class={`peek verdict-${verdict.status}`} onClick={() => card.current?.scrollIntoView({ block: "start" })}>
        <Icon name={ICONS[verdict.status]} /><b>{w("status", verdict.status)}</b><span>{bytes(verdict.required_bytes)} {verdict.required_bytes <= verdict.available_bytes ? "≤" : ">"} {bytes(verdict.available_bytes)}</span>
      </button>
    )}
    <section ref={card} class={`card verdict verdict-${verdict.status} ${stale ? "stale" : ""}`} aria-label={t("verdict.title")}>
      <span class="verdict-mark"><Icon name={ICONS[verdict.status]} /></span>
      <div class="verdict-text" aria-live="polite" aria-atomic="true">
        <h1>{w("status", verdict.status)}{on ? <span class="on"> {t("verdict.on", { gpu: on })}</span> : null}</h1>
        <p>{verdict.sentence}</p>
      </div>
      <dl class="stats">
        <div>
          <dt>{t("verdict.required")}</dt>
          <dd>
            <Num value={verdict.required_bytes} topic={{ title: t("verdict.required"), parts, steps: ["per_rank", "rank.", "weights.per_rank"], facts: [verdict.sentence] }} />
            {verdict.required_low_bytes !== verdict.required_high_bytes ? <small>{bytes(verdict.required_low_bytes)} – {bytes(verdict.required_high_bytes)}</small> : null}
          </dd>
        </div>
        <div class="related" data-relation={verdict.required_bytes <= verdict.available_bytes ? "≤" : ">"}>
          <dt>{t("verdict.available")}</dt>
          <dd><Num value={verdict.available_bytes} topic={{ title: t("verdict.available"), facts: [verdict.sentence] }} /></dd>
        </div>
        <div>
          <dt>{slack >= 0 ? t("verdict.slack") : t("verdict.short")}</dt>
          <dd><Num value={Math.abs(slack)} topic={{ title: slack >= 0 ? t("verdict.slack") : t("verdict.short"), facts: [verdict.sentence] }} /></dd>
        </div>
      </dl>
    </section>
    </>
  );
}
