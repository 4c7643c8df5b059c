/** How one sequence grows: fixed part, slope, and the curve with the GPU's room drawn in. */
import { Curve, type Line } from "../charts/curve";
import { ChartCard } from "../charts/frame";
import { bends, rankBytes, sequenceBytes } from "../exact";
import { bytes, count, exactBytes } from "../format";
import { useText } from "../i18n";
import { ask } from "../state/store";
import type { FitAnswer, SizeAnswer } from "../types";
import { Num } from "../ui/num";

interface Props {
  size: SizeAnswer;
  fit: FitAnswer | null;
  context: number;
  sequences: number;
}

/** The line of what the fullest GPU holds for all sequences, where the library gives its terms. */
function gpuLine(size: SizeAnswer, sequences: number, name: string): Line | null {
  const rank = size.cache.rank_terms;
  if (!rank) return null;
  return { name, tone: 0, terms: rank.terms, at: (tokens) => rankBytes(size.cache, sequences, size.request.data_parallel, tokens) ?? 0n };
}

/** The card with the curve. */
export function Growth({ size, fit, context, sequences }: Props) {
  const { t } = useText();
  const { cache } = size;
  const ranks = cache.per_rank_bytes.length;
  const perGpu = fit ? gpuLine(size, sequences, t("curve.perGpu")) : null;
  const whole: Line = { name: t("curve.all"), tone: 0, terms: cache.terms, at: (tokens) => BigInt(sequences) * sequenceBytes(cache, tokens) };
  const line = perGpu ?? whole;
  const pools = fit?.devices.map((device) => device.allocations.find((one) => one.kind === "cache")?.bytes ?? Infinity) ?? [];
  const room = pools.length ? Math.min(...pools) : Infinity;
  const limit = fit && (perGpu || ranks === 1) && Number.isFinite(room) ? Math.max(0, room) : null;
  const longest = fit && fit.max_context_limited_by === "memory" ? fit.max_context_tokens : null;
  const end = Math.max(context, size.model.context_limit_tokens ?? 0, 1024);
  const points = [...new Set([...bends(line.terms, end), ...[1024, 4096, 16384, 32768, 65536, 131072, 262144, 1048576].filter((at) => at <= end), context])].sort((a, b) => a - b);
  const held = line.at(context);
  const summary = t("curve.summary", { size: bytes(held), tokens: count(context), sequences: count(sequences), end: count(end) });
  return (
    <ChartCard title={perGpu ? t("curve.title.gpu") : t("curve.title")} name="cache-over-context"
      lead={
        <p class="lead">
          {t("growth.one")}{" "}
          {cache.fixed_bytes_per_sequence > 0 ? (
            <><Num value={cache.fixed_bytes_per_sequence} topic={{ title: t("growth.fixed"), steps: ["fixed"] }} /> {t("growth.fixedThen")}{" "}</>
          ) : null}
          <Num value={cache.growth_bytes_per_token} topic={{ title: t("growth.perToken"), steps: ["growth", "group."] }} /> {t("growth.perTokenAt", { tokens: count(context) })}
          {" · "}<Num value={sequenceBytes(cache, context)} topic={{ title: t("growth.sequence"), steps: ["per_sequence"] }} /> {t("growth.perSequence")}
          {" · "}<Num value={held} topic={{ title: line.name, steps: ["total", "per_rank", "rank."] }} /> {perGpu ? t("growth.onGpu", { sequences: count(sequences) }) : t("growth.all", { sequences: count(sequences) })}
        </p>
      }
      table={() => ({
        head: [t("unit.tokens"), t("growth.sequence"), line.name],
        rows: points.map((at) => [count(at), `${bytes(sequenceBytes(cache, at))} (${exactBytes(sequenceBytes(cache, at))})`, bytes(line.at(at))]),
      })}>
      <Curve lines={[line]} end={end} context={context} limit={limit} longest={longest} summary={summary} onPick={(tokens) => ask({ context: tokens })} />
    </ChartCard>
  );
}
