/** Cache against context: exact at every token, with the room of the GPU and the load drawn in. */
import { useId, useRef } from "preact/hooks";
import { bytes, count, shortTokens } from "../format";
import { bends } from "../exact";
import { useText } from "../i18n";
import type { Term } from "../types";
import { useWidth } from "./frame";
import { Patterns } from "./kinds";

export interface Line {
  name: string;
  /** Bytes at a context, from the library's terms. */
  at: (tokens: number) => bigint;
  terms: readonly Term[];
  /** Which of the line colours; models keep theirs, whatever stands beside them. */
  tone: number;
}

interface Props {
  lines: Line[];
  end: number;
  context: number;
  /** Room for cache on the fullest GPU. */
  limit: number | null;
  /** The longest context that fits, and whether memory is what limits it. */
  longest: number | null;
  summary: string;
  onPick?: (tokens: number) => void;
}

const HEIGHT = 260;
const PAD = { left: 72, right: 14, top: 18, bottom: 30 };

/** Round steps in bytes for an axis up to `top`. */
function byteTicks(top: number): number[] {
  const unit = 1024 ** Math.max(0, Math.floor(Math.log(Math.max(top, 1)) / Math.log(1024)));
  const raw = top / unit / 4;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= raw) ?? raw;
  const ticks: number[] = [];
  for (let at = 0; at * unit <= top * 1.0001; at += step) ticks.push(at * unit);
  return ticks;
}

function tokenTicks(end: number, most: number): number[] {
  let step = 1;
  while (end / step > most) step *= 2;
  const ticks: number[] = [];
  for (let at = 0; at <= end; at += step) ticks.push(at);
  return ticks;
}

/** The drawing of the curves. */
export function Curve({ lines, end, context, limit, longest, summary, onPick }: Props) {
  const { t } = useText();
  const prefix = useId().replace(/\W/g, "") + "c";
  const [place, width] = useWidth<HTMLDivElement>();
  const drawing = useRef<SVGSVGElement>(null);
  const high = Math.max(1, ...lines.map((line) => Number(line.at(end))));
  const top = Math.max(high, limit !== null && limit < 3 * high ? limit : 0) * 1.06;
  const inner = { wide: width - PAD.left - PAD.right, tall: HEIGHT - PAD.top - PAD.bottom };
  const x = (tokens: number) => PAD.left + (inner.wide * tokens) / end;
  const y = (size: number) => PAD.top + inner.tall * (1 - Math.min(size, top) / top);
  const shownLimit = limit !== null && limit <= top;
  const points = (line: Line) => {
    const found = new Set(bends(line.terms, end));
    for (let at = 1; at <= 48; at += 1) found.add(Math.round((end * at) / 48));
    return [...found].sort((a, b) => a - b).map((at) => `${x(at).toFixed(1)},${y(Number(line.at(at))).toFixed(1)}`);
  };
  const pick = (event: PointerEvent) => {
    if (!onPick || !drawing.current || (event.type === "pointermove" && !(event.buttons & 1))) return;
    const box = drawing.current.getBoundingClientRect();
    const raw = ((event.clientX - box.left - PAD.left) / inner.wide) * end;
    const grain = end >= 65536 ? 1024 : 256;
    onPick(Math.max(1, Math.min(end, Math.round(raw / grain) * grain || grain)));
  };
  const now = lines[0];
  const held = now ? now.at(context) : 0n;
  // A curve rises, so the space above it is on the left; near the axis there is none, but some below.
  const side = x(context) > PAD.left + 190 ? "end" : "start";
  const nowY = Math.max(PAD.top + 12, side === "end" || y(Number(held)) > HEIGHT - PAD.bottom - 40 ? y(Number(held)) - 12 : y(Number(held)) + 22);
  const low = shownLimit && y(limit) > PAD.top + inner.tall * 0.6;
  return (
    <div ref={place} class="chart-place">
      <svg ref={drawing} class={`chart curve ${onPick ? "pick" : ""}`} width={width} height={HEIGHT} viewBox={`0 0 ${width} ${HEIGHT}`} role="img" aria-label={summary} onPointerDown={pick} onPointerMove={pick}>
        <Patterns prefix={prefix} />
        {byteTicks(top).map((tick) => (
          <g>
            <line x1={PAD.left} x2={width - PAD.right} y1={y(tick)} y2={y(tick)} class="grid" />
            <text x={PAD.left - 8} y={y(tick) + 4} text-anchor="end" class="tick">{tick ? bytes(tick).replace(/\.0+ /, " ").replace(/(\.\d*?)0+ /, "$1 ") : "0"}</text>
          </g>
        ))}
        {tokenTicks(end, Math.max(3, Math.floor(inner.wide / 80))).map((tick) => (
          <text x={x(tick)} y={HEIGHT - 10} text-anchor={x(tick) > width - 40 ? "end" : "middle"} class="tick">{shortTokens(tick)}</text>
        ))}
        {shownLimit ? (
          <g>
            <rect x={PAD.left} y={PAD.top} width={inner.wide} height={Math.max(0, y(limit) - PAD.top)} fill={`url(#${prefix}short)`} class="beyond" />
            <line x1={PAD.left} x2={width - PAD.right} y1={y(limit)} y2={y(limit)} class="limit" />
            <text x={PAD.left + 8} y={limit > 0 ? Math.max(12, y(limit) - 6) : PAD.top + 14} class="limit-label">{limit > 0 ? t("curve.limit", { size: bytes(limit) }) : t("curve.noRoom")}</text>
          </g>
        ) : null}
        {longest !== null && longest > 0 && longest < end ? (
          <g>
            <line x1={x(longest)} x2={x(longest)} y1={PAD.top} y2={HEIGHT - PAD.bottom} class="longest" />
            <text x={x(longest) + (x(longest) > width * 0.6 ? -6 : 6)} y={low ? PAD.top + 14 : HEIGHT - PAD.bottom - 8} text-anchor={x(longest) > width * 0.6 ? "end" : "start"} class="tick">{t("curve.longest", { tokens: count(longest) })}</text>
          </g>
        ) : null}
        {lines.map((line, at) => {
          const path = points(line);
          return (
            <g>
              {at === 0 && lines.length === 1 ? <polygon points={`${PAD.left},${y(0)} ${path.join(" ")} ${x(end)},${y(0)}`} class="area" /> : null}
              <polyline points={path.join(" ")} class={`line line-${line.tone}`} />
            </g>
          );
        })}
        <line x1={PAD.left} x2={width - PAD.right} y1={y(0)} y2={y(0)} class="base" />
        {now && context <= end ? (
          <g>
            <line x1={x(context)} x2={x(context)} y1={y(Number(held))} y2={HEIGHT - PAD.bottom} class="now-line" />
            <circle cx={x(context)} cy={y(Number(held))} r="5.5" class="now" />
            {lines.length === 1 ? (
              <text x={x(context) + (side === "end" ? -10 : 10)} y={nowY} text-anchor={side} class="now-label">
                {t("curve.now", { size: bytes(held), tokens: count(context) })}
              </text>
            ) : null}
          </g>
        ) : null}
      </svg>
    </div>
  );
}
