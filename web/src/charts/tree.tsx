/** The decisions of a plan as a drawn path: each question, the answer taken, and why. */
import { useText } from "../i18n";
import { useWidth } from "./frame";

interface Step {
  question: string;
  answer: string;
  because: string;
}

/** Words of a text in lines of at most `most` columns; a Chinese sign takes two. */
export function wrap(text: string, most: number): string[] {
  const lines: string[] = [];
  let line = "";
  let width = 0;
  for (const piece of text.match(/[\u2e80-\uffef]|[^\s\u2e80-\uffef]+\s*|\s+/g) ?? []) {
    const size = [...piece].reduce((sum, sign) => sum + (sign > "\u2e7f" ? 2 : 1), 0);
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

const LINE = 17;
const PAD = 12;

/** The drawing. */
export function Tree({ path }: { path: readonly Step[] }) {
  const { t } = useText();
  const [place, width] = useWidth<HTMLDivElement>();
  const box = Math.min(width - 30, 620);
  const columns = Math.max(24, Math.floor((box - 2 * PAD) / 7.4));
  let y = 4;
  const steps = path.map((step) => {
    const question = wrap(step.question, columns);
    const because = wrap(step.because, columns + 4);
    const answer = wrap(step.answer, columns);
    const height = PAD * 2 + (question.length + answer.length + because.length) * LINE + 2;
    const found = { step, question, answer, because, y, height };
    y += height + 26;
    return found;
  });
  return (
    <div ref={place} class="chart-place">
      <svg class="chart tree" width={width} height={Math.max(40, y - 18)} role="img" aria-label={path.map((step) => `${step.question}: ${step.answer}`).join("; ") || t("plan.path")}>
        {steps.map((item, at) => (
          <g>
            {at < steps.length - 1 ? <path d={`M${22} ${item.y + item.height}v26m-4 -6l4 6l4 -6`} class="taken" fill="none" /> : null}
            <rect x="1" y={item.y} width={box} height={item.height} rx="7" class="node" />
            <rect x="1" y={item.y} width="4" height={item.height} rx="2" class="node-edge" />
            {item.question.map((line, row) => <text x={PAD + 4} y={item.y + PAD + 11 + row * LINE} class="node-question">{line}</text>)}
            {item.answer.map((line, row) => <text x={PAD + 4} y={item.y + PAD + 12 + (item.question.length + row) * LINE} class="node-answer">{line}</text>)}
            {item.because.map((line, row) => <text x={PAD + 4} y={item.y + PAD + 13 + (item.question.length + item.answer.length + row) * LINE} class="node-because">{line}</text>)}
          </g>
        ))}
      </svg>
    </div>
  );
}
