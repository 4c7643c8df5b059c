/** The decisions of a plan as a tree: each question with its branches, the one that was taken marked. */
import { useText } from "../i18n";
import { typeScale, useWidth } from "./frame";

interface Step {
  question: string;
  answer: string;
  answer_code?: string;
  because: string;
}

/** Words of a text in lines of at most `most` columns; a Chinese sign takes two. */
export function wrap(text: string, most: number): string[] {
  const lines: string[] = [];
  let line = "";
  let width = 0;
  for (const piece of text.match(/[\u2e80-\uffef]|[^\s\u2e80-\uffef]+\s*|\s+/g) ?? []) {
    const size = columns(piece);
    if (line && width + size > most) {
      lines.push(line.trimEnd());
      line = "";
      width = 0;
    }
    line += piece;
    width += size;
  }
  if (line.trim()) lines.push(line.trimEnd());
  return lines;
}

function columns(text: string): number {
  return [...text].reduce((sum, sign) => sum + (sign > "\u2e7f" ? 2 : 1), 0);
}

const SPINE = 20;
const LEFT = 44;
const GAP = 14;

interface Sizes {
  sign: number;
  line: number;
  pad: number;
  scale: number;
}

/** One question, laid out: its lines, the branch taken, the branch that was not. */
function laid(step: Step, wide: number, other: string | null, { sign: SIGN, line: LINE, pad: PAD, scale }: Sizes) {
  const question = wrap(step.question, Math.floor((wide - 2 * PAD) / SIGN));
  const because = wrap(step.because, Math.floor((wide - 2 * PAD) / (SIGN * 0.9)));
  const most = Math.floor((wide - 2 * PAD - (other ? 110 : 20) * scale) / SIGN);
  const answer = wrap(step.answer, Math.max(12, most));
  const height = PAD * 2 + question.length * LINE + answer.length * LINE + 12 * scale + (because.length ? because.length * 16 * scale + 4 : 0);
  return { question, because, answer, height };
}

/** The drawing. */
export function Tree({ path }: { path: readonly Step[] }) {
  const { t } = useText();
  const [place, width] = useWidth<HTMLDivElement>();
  const scale = typeScale();
  const sizes: Sizes = { sign: 8.2 * scale, line: 18 * scale, pad: 11, scale };
  const { sign: SIGN, line: LINE, pad: PAD } = sizes;
  const box = Math.min(width - LEFT - 2, 640 * scale);
  let y = 4;
  const steps = path.map((step, at) => {
    const other = step.answer_code === "yes" ? t("plan.no") : step.answer_code === "no" ? t("plan.yes") : null;
    const found = { ...laid(step, box, other, sizes), step, other, y, last: at === path.length - 1 };
    y += found.height + GAP;
    return found;
  });
  const end = steps.at(-1);
  return (
    <div ref={place} class="chart-place">
      <svg class="chart tree" width={width} height={Math.max(40, y)} viewBox={`0 0 ${width} ${Math.max(40, y)}`} role="img" aria-label={path.map((step) => `${step.question} ${step.answer}`).join("; ") || t("plan.path")}>
        {end ? <line x1={SPINE} x2={SPINE} y1={20} y2={end.y + 20} class="taken" /> : null}
        {steps.map((item) => {
          const top = item.y + PAD + item.question.length * LINE + 4 * scale;
          const tall = item.answer.length * LINE + 6 * scale;
          const wide = Math.max(...item.answer.map(columns)) * SIGN + 22;
          const right = LEFT + PAD + wide + 46;
          return (
            <g>
              <path d={`M${SPINE} ${item.y + 20}H${LEFT}`} class="taken" />
              <circle cx={SPINE} cy={item.y + 20} r={item.last ? 9 : 7} class={`knot knot-${item.step.answer_code ?? "other"} ${item.last ? "knot-last" : ""}`} />
              <text x={SPINE} y={item.y + 24} text-anchor="middle" class="knot-mark">{item.last ? "★" : item.step.answer_code === "yes" ? "✓" : item.step.answer_code === "no" ? "✕" : "•"}</text>
              <rect x={LEFT} y={item.y} width={box} height={item.height} rx="8" class={`node ${item.last ? "node-last" : ""}`} />
              {item.question.map((line, row) => <text x={LEFT + PAD} y={item.y + PAD + 12 * scale + row * LINE} class="node-question">{line}</text>)}
              <rect x={LEFT + PAD} y={top} width={wide} height={tall} rx={tall / 2 > 12 ? 9 : tall / 2} class="branch" />
              {item.answer.map((line, row) => <text x={LEFT + PAD + 11} y={top + 16 * scale + row * LINE} class="branch-text">{line}</text>)}
              {item.other ? (
                <g class="untaken">
                  <path d={`M${LEFT + PAD + wide} ${top + tall / 2}H${right}`} />
                  <rect x={right} y={top + 1} width={columns(item.other) * SIGN + 20} height={22 * scale} rx={11 * scale} />
                  <text x={right + 10} y={top + 16 * scale}>{item.other}</text>
                </g>
              ) : null}
              {item.because.map((line, row) => <text x={LEFT + PAD} y={top + tall + (17 + row * 16) * scale} class="node-because">{line}</text>)}
            </g>
          );
        })}
      </svg>
    </div>
  );
}
