/** What the answer rests on: every part with its grade and range, what was taken by default, what the library notes. */
import { bytes, exactBytes } from "../format";
import { useText } from "../i18n";
import type { Allocation, Note, RequestInfo } from "../types";
import { Icon } from "../ui/icons";
import { kept } from "../ui/kept";
import { GradeMark } from "./grade";

function Range({ one, widest }: { one: Allocation; widest: number }) {
  if (one.low_bytes === one.high_bytes || !widest) return null;
  const x = (size: number) => (100 * size) / widest;
  return (
    <svg class="range" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
      <line x1="0" x2="100" y1="5" y2="5" class="range-base" />
      <line x1={x(one.low_bytes)} x2={x(one.high_bytes)} y1="5" y2="5" class="range-bar" />
      <line x1={x(one.bytes)} x2={x(one.bytes)} y1="0.5" y2="9.5" class="range-mark" />
    </svg>
  );
}

interface Props {
  allocations: Allocation[];
  request: RequestInfo;
  notes: Note[];
}

/** The card of assumptions. */
export const Assumptions = kept(function Assumptions({ allocations, request, notes }: Props) {
  const { t, w } = useText();
  const estimates = allocations.filter((one) => one.low_bytes !== one.high_bytes && one.kind !== "cache");
  const widest = Math.max(0, ...estimates.map((one) => one.high_bytes));
  const values = request as unknown as Record<string, unknown>;
  return (
    <section class="card" aria-label={t("assume.title")}>
      <header class="card-head"><h2>{t("assume.title")}</h2></header>
      {notes.length ? (
        <ul class="notes">
          {notes.map((note) => (
            <li class={`note note-${note.level}`}><Icon name={note.level === "warning" ? "warn" : "info"} /><span>{note.message}</span></li>
          ))}
        </ul>
      ) : null}
      <div class="scroll" tabIndex={0} role="region" aria-label={t("assume.title")}>
        <table class="assume">
          <thead><tr><th scope="col">{t("parts.name")}</th><th scope="col" class="right">{t("parts.bytes")}</th><th scope="col">{t("assume.range")}</th><th scope="col">{t("parts.grade")}</th></tr></thead>
          <tbody>
            {allocations.map((one) => (
              <tr>
                <th scope="row">{w("allocation", one.name)}<small>{one.because}</small></th>
                <td class="right" title={exactBytes(one.bytes)}>{bytes(one.bytes)}</td>
                <td class="range-cell">
                  {one.low_bytes !== one.high_bytes ? <>{one.kind === "cache" ? null : <Range one={one} widest={widest} />}<small>{bytes(one.low_bytes)} – {bytes(one.high_bytes)}</small></> : <small>—</small>}
                </td>
                <td><GradeMark grade={one.grade} /></td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {request.defaulted.length ? (
        <p class="hint defaults">
          {t("assume.defaults")}{" "}
          {request.defaulted.map((name) => <span class="chip plain">{w("field", name)} <b>{String(values[name] ?? "auto")}</b></span>)}
        </p>
      ) : null}
    </section>
  );
});
