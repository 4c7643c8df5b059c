/** One stacked bar per GPU: the same parts in the same order, to one scale, with the engine's limit. */
import { useId } from "preact/hooks";
import { bytes, exactBytes } from "../format";
import { useText } from "../i18n";
import { typeScale, useWidth } from "./frame";
import { KINDS, Patterns, type Kind } from "./kinds";

export interface Segment {
  kind: Kind;
  bytes: number;
}

export interface Bar {
  label: string;
  segments: Segment[];
  /** The memory of the device, where one is named. */
  capacity: number | null;
}

interface Props {
  bars: Bar[];
  /** What the engine may use of each device. */
  limit: number | null;
  summary: string;
}

const HEIGHT = 30;
const GAP = 14;
const TOP = 22;

/** Segments of equal kinds joined, in the order of KINDS. */
export function joined(segments: Segment[]): Segment[] {
  const sums = new Map<Kind, number>();
  for (const { kind, bytes: size } of segments) sums.set(kind, (sums.get(kind) ?? 0) + size);
  return KINDS.flatMap((kind) => (sums.get(kind) ? [{ kind, bytes: sums.get(kind) ?? 0 }] : []));
}

/** The drawing of the bars. */
export function Bars({ bars, limit, summary }: Props) {
  const { t, w } = useText();
  const prefix = useId().replace(/\W/g, "") + "p";
  const [place, width] = useWidth<HTMLDivElement>();
  const left = bars.length > 1 || bars.some((bar) => bar.label.length) ? 22 + 7 * typeScale() * Math.max(...bars.map((bar) => bar.label.length)) : 0;
  const largest = Math.max(1, ...bars.map((bar) => Math.max(bar.capacity ?? 0, bar.segments.reduce((sum, part) => sum + part.bytes, 0))));
  const room = width - left - 2;
  const scale = (size: number) => (room * size) / largest;
  const tall = bars.length > 8 ? 18 : bars.length === 1 ? HEIGHT + 8 : HEIGHT;
  const gap = bars.length > 8 ? 6 : GAP;
  const height = TOP + bars.length * (tall + gap) + 20;
  const marks = [limit, bars[0]?.capacity ?? null];
  const limitEnd = limit !== null && scale(limit) > room * 0.6;
  return (
    <div ref={place} class="chart-place">
      <svg class="chart" width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={summary}>
        <Patterns prefix={prefix} />
        {bars.map((bar, row) => {
          const y = TOP + row * (tall + gap);
          let at = 0;
          return (
            <g>
              <text x="0" y={y + tall / 2 + 4} class="label">{bar.label}</text>
              {bar.capacity !== null ? <rect x={left} y={y} width={scale(bar.capacity)} height={tall} rx="4" class="ground" /> : null}
              {joined(bar.segments).map((part) => {
                const x = left + scale(at);
                at += part.bytes;
                const wide = Math.max(0.75, scale(part.bytes) - 1);
                return (
                  <rect x={x} y={y} width={wide} height={tall} rx={wide > 6 ? 2.5 : 0} fill={`url(#${prefix}${part.kind})`} class={`edge part-${part.kind}`}>
                    <title>{`${w("kind", part.kind)}: ${bytes(part.bytes)} (${exactBytes(part.bytes)})`}</title>
                  </rect>
                );
              })}
              {bar.capacity !== null ? <rect x={left} y={y} width={scale(bar.capacity)} height={tall} rx="4" class="outline" /> : null}
            </g>
          );
        })}
        {limit !== null ? (
          <g>
            <line x1={left + scale(limit)} x2={left + scale(limit)} y1={TOP - 8} y2={height - 22} class="limit" />
            <text x={left + scale(limit) + (limitEnd ? 2 : 0)} y={TOP - 11} class="limit-label" text-anchor={limitEnd ? "end" : "start"}>{t("bars.limit", { size: bytes(limit) })}</text>
          </g>
        ) : null}
        <g class="axis">
          <text x={left} y={height - 4}>0</text>
          {marks[1] !== null && marks[1] !== undefined ? (
            <text x={left + Math.max(scale(marks[1]), 24)} y={height - 4} text-anchor={scale(marks[1]) > 170 ? "end" : "start"}>{t("bars.memory", { size: bytes(marks[1]) })}</text>
          ) : null}
          {largest > (marks[1] ?? 0) * 1.25 ? <text x={left + room} y={height - 4} text-anchor="end">{bytes(largest)}</text> : null}
        </g>
      </svg>
    </div>
  );
}
