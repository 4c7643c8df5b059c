/** Small charts for figures that stand side by side: bars in a list, shares in a matrix, parts of a whole. */
import { three } from "../format";
import { typeScale, useWidth } from "./frame";

export interface Row {
  label: string;
  value: number;
  text: string;
  /** Which of a few tones; the text beside a bar says what it is. */
  tone?: number;
}

/** Bars in a list, to one scale, each with its figure in words. */
export function BarList({ rows, summary, high }: { rows: Row[]; summary: string; high?: number }) {
  const [place, width] = useWidth<HTMLDivElement>();
  const s = typeScale();
  const most = high ?? Math.max(Number.MIN_VALUE, ...rows.map((row) => row.value));
  const left = Math.min(width * 0.42, 12 + 7.4 * s * Math.max(4, ...rows.map((row) => wide(row.label))));
  const right = 12 + 7.4 * s * Math.max(4, ...rows.map((row) => wide(row.text)));
  const room = Math.max(20, width - left - right);
  return (
    <div ref={place} class="chart-place">
      <svg class="chart small-bars" width={width} height={rows.length * 26 * s + 4} viewBox={`0 0 ${width} ${rows.length * 26 * s + 4}`} role="img" aria-label={`${summary}: ${rows.map((row) => `${row.label} ${row.text}`).join(", ")}`}>
        {rows.map((row, at) => (
          <g>
            <text x="0" y={(at * 26 + 18) * s} class="label">{row.label}</text>
            <rect x={left} y={(at * 26 + 5) * s} width={Math.max(1, (room * row.value) / most)} height={17 * s} rx="3" class={`tone tone-${row.tone ?? 0}`} />
            <text x={left + Math.max(1, (room * row.value) / most) + 8} y={(at * 26 + 18) * s} class="figure">{row.text}</text>
          </g>
        ))}
      </svg>
    </div>
  );
}

function wide(text: string): number {
  return [...text].reduce((sum, sign) => sum + (sign > "\u2e7f" ? 2 : 1), 0);
}

interface HeatProps {
  rows: string[];
  columns: string[];
  shares: number[][];
  summary: string;
}

/** Shares of 1 as a matrix: the darker, the larger, each with its figure; what is masked is left empty. */
export function Heat({ rows, columns, shares, summary }: HeatProps) {
  const [place, width] = useWidth<HTMLDivElement>();
  const s = typeScale();
  const left = 16 + 8 * s * Math.max(3, ...rows.map(wide));
  const cell = Math.max(18, Math.min(64 * s, (width - left) / Math.max(1, columns.length)));
  const high = Math.min(34 * s, cell);
  const figures = cell >= 40 * s;
  return (
    <div ref={place} class="chart-place scroll" tabIndex={0} role="region" aria-label={summary}>
      <svg class="chart heat" width={left + cell * columns.length} height={24 + high * rows.length} role="img" aria-label={summary}>
        {columns.map((name, at) => <text x={left + cell * (at + 0.5)} y="14" text-anchor="middle" class="label">{name}</text>)}
        {rows.map((name, row) => (
          <g>
            <text x="0" y={24 + high * (row + 0.5) + 4} class="label">{name}</text>
            {columns.map((_, column) => {
              const share = shares[row]?.[column] ?? 0;
              return (
                <g>
                  <rect x={left + cell * column + 1} y={24 + high * row + 1} width={cell - 2} height={high - 2} rx="3" class="heat-ground" />
                  {share > 0 ? <rect x={left + cell * column + 1} y={24 + high * row + 1} width={cell - 2} height={high - 2} rx="3" class="heat-cell" fill-opacity={(0.06 + 0.94 * share).toFixed(3)}><title>{`${name} → ${columns[column] ?? ""}: ${three(100 * share)} %`}</title></rect> : null}
                  {figures && share > 0 ? <text x={left + cell * (column + 0.5)} y={24 + high * (row + 0.5) + 4} text-anchor="middle" class={share > 0.55 ? "heat-on" : "heat-off"}>{`${Math.round(100 * share)}`}</text> : null}
                </g>
              );
            })}
          </g>
        ))}
      </svg>
    </div>
  );
}

export interface Whole {
  label: string;
  parts: { name: string; share: number; tone: number }[];
}

/** Wholes cut into parts, one bar each. */
export function Shares({ wholes, summary }: { wholes: Whole[]; summary: string }) {
  const [place, width] = useWidth<HTMLDivElement>();
  const s = typeScale();
  const left = Math.min(width * 0.45, 12 + 7.4 * s * Math.max(4, ...wholes.map((one) => wide(one.label))));
  const room = width - left;
  return (
    <div ref={place} class="chart-place">
      <svg class="chart" width={width} height={wholes.length * 28 * s + 4} viewBox={`0 0 ${width} ${wholes.length * 28 * s + 4}`} role="img" aria-label={summary}>
        {wholes.map((whole, row) => {
          let at = 0;
          return (
            <g>
              <text x="0" y={(row * 28 + 19) * s} class="label">{whole.label}</text>
              {whole.parts.map((part) => {
                const x = left + room * at;
                at += part.share;
                return part.share > 0 ? (
                  <g>
                    <rect x={x} y={(row * 28 + 4) * s} width={Math.max(0.5, room * part.share - 1)} height={20 * s} rx="2" class={`tone tone-${part.tone}`}><title>{`${part.name}: ${three(100 * part.share)} %`}</title></rect>
                    {room * part.share > 40 ? <text x={x + (room * part.share) / 2} y={(row * 28 + 18) * s} text-anchor="middle" class={`on-tone on-${part.tone}`}>{`${Math.round(100 * part.share)} %`}</text> : null}
                  </g>
                ) : null;
              })}
            </g>
          );
        })}
      </svg>
    </div>
  );
}
