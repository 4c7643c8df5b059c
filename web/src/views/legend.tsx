/** The parts of the bars with their figures, each of which opens its derivation. */
import { useId } from "preact/hooks";
import { joined, type Segment } from "../charts/bars";
import { Patterns, Swatch } from "../charts/kinds";
import { percent } from "../format";
import { useText } from "../i18n";
import { Num } from "../ui/num";
import type { Part } from "../ui/derivation";

interface Props {
  segments: Segment[];
  whole: number;
  /** What a part consists of, and the steps that derive it. */
  parts: Record<string, Part[]>;
  steps: Record<string, string[]>;
  free: number | null;
}

/** One entry a part, in the order of the bars. */
export function Legend({ segments, whole, parts, steps, free }: Props) {
  const { w } = useText();
  const prefix = useId().replace(/\W/g, "") + "l";
  return (
    <ul class="legend">
      <svg width="0" height="0" class="offscreen" aria-hidden="true"><Patterns prefix={prefix} /></svg>
      {joined([...segments, ...(free !== null && free > 0 ? [{ kind: "free" as const, bytes: free }] : [])]).map(({ kind, bytes }) => (
        <li key={kind}>
          <Swatch kind={kind} prefix={prefix} />
          <span class="legend-name">{w("kind", kind)}</span>
          <Num value={bytes} topic={{ title: w("kind", kind), parts: parts[kind] ?? [], steps: steps[kind] ?? [] }} />
          <span class="legend-share">{percent(bytes, whole)}</span>
        </li>
      ))}
    </ul>
  );
}
