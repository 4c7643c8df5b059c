/** A slider on a logarithmic scale with a field beside it. */
import { useEffect, useId, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";

interface Props {
  label: string;
  unit: string;
  value: number;
  low: number;
  high: number;
  /** Grain of the slider, given a value: the field takes any whole number. */
  grain: (value: number) => number;
  show: (value: number) => string;
  parse: (text: string) => number | null;
  marks?: { at: number; text: string }[];
  onChange: (value: number) => void;
  children?: ComponentChildren;
}

const STEPS = 1000;

/** A labelled slider and field of one whole number. */
export function Slider({ label, unit, value, low, high, grain, show, parse, marks = [], onChange, children }: Props) {
  const id = useId();
  const [draft, setDraft] = useState<string | null>(null);
  useEffect(() => setDraft(null), [value]);
  const span = Math.log2(high / low) || 1;
  const place = (at: number) => (STEPS * Math.log2(Math.min(Math.max(at, low), high) / low)) / span;
  const slide = (position: number) => {
    const raw = low * 2 ** ((span * position) / STEPS);
    const step = grain(raw);
    onChange(Math.min(high, Math.max(low, Math.round(raw / step) * step)));
  };
  const key = (event: KeyboardEvent) => {
    // Arrow keys move by the grain, which a logarithmic position would not.
    const sign = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    const factor = { PageUp: 2, PageDown: 0.5 }[event.key];
    if (sign === undefined && factor === undefined) return;
    event.preventDefault();
    const step = grain(sign === -1 ? value - 1 : value);
    const next = factor ? value * factor : (Math.floor(value / step) + (sign === -1 && value % step ? 0 : (sign ?? 0))) * step;
    onChange(Math.min(high, Math.max(low, Math.round(next))));
  };
  const read = (text: string) => {
    const found = parse(text);
    if (found === null) return setDraft(null);
    onChange(found);
    setDraft(null);
  };
  return (
    <div class="field slider">
      <div class="slider-head">
        <label for={`${id}f`}>{label}</label>
        {children}
        <span class="slider-value">
          <input id={`${id}f`} class="text short" inputMode="text" autocomplete="off" value={draft ?? show(value)}
            onInput={(event) => setDraft(event.currentTarget.value)}
            onBlur={(event) => read(event.currentTarget.value)}
            onKeyDown={(event) => event.key === "Enter" && read(event.currentTarget.value)} />
          <span class="unit">{unit}</span>
        </span>
      </div>
      <input type="range" min={0} max={STEPS} step={1} value={place(value)} aria-label={label}
        aria-valuetext={`${show(value)} ${unit}`} onKeyDown={key}
        onInput={(event) => slide(Number(event.currentTarget.value))} />
      {marks.length ? (
        <svg class="marks" aria-hidden="true" width="100%" height="16">
          {marks.map((mark) => {
            const share = place(mark.at) / STEPS;
            const anchor = share > 0.9 ? "end" : share < 0.1 ? "start" : "middle";
            return <text x={`${100 * share}%`} y="12" text-anchor={anchor}>{mark.text}</text>;
          })}
        </svg>
      ) : null}
    </div>
  );
}
