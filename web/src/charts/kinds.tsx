/** The parts of memory: one order, one colour and one pattern each, everywhere. */
import { kept } from "../ui/kept";

/** In the order of a bar. `pool` is what an engine has allocated for cache and this load leaves empty. */
export const KINDS = ["weights", "cache", "state", "pool", "activations", "graphs", "compute", "runtime", "short", "free"] as const;
export type Kind = (typeof KINDS)[number];

/** The kind of an allocation of the API. */
export function kindOf(name: string): Kind {
  return (KINDS as readonly string[]).includes(name) ? (name as Kind) : "runtime";
}

/** Lines over each colour, so that no part is told by colour alone. Drawn in an 8 x 8 tile. */
const LINES: Record<Kind, string> = {
  weights: "",
  cache: "M-2 10L10 -2M-6 6L6 -6M2 14L14 2",
  state: "M4 0V8",
  pool: "M-2 10L10 -2M-6 6L6 -6M2 14L14 2",
  activations: "M0 4H8M4 0V8",
  graphs: "M-2 -2L10 10M-6 2L6 14M2 -6L14 6",
  compute: "M0 2H8M0 6H8",
  runtime: "M1.5 2h1M5.5 6h1",
  short: "M-2 10L10 -2M-6 6L6 -6M2 14L14 2M-2 -2L10 10",
  free: "",
};

/** Definitions of the patterns; `prefix` keeps two charts of one page apart. */
export const Patterns = kept(function Patterns({ prefix }: { prefix: string }) {
  return (
    <defs>
      {KINDS.map((kind) => (
        <pattern id={`${prefix}${kind}`} width="8" height="8" patternUnits="userSpaceOnUse">
          <rect width="8" height="8" class={`paint-${kind}`} />
          {LINES[kind] ? <path d={LINES[kind]} class={`lines-${kind}`} fill="none" /> : null}
        </pattern>
      ))}
    </defs>
  );
});

/** A sample of a kind for a legend. */
export const Swatch = kept(function Swatch({ kind, prefix }: { kind: Kind; prefix: string }) {
  return (
    <svg class="swatch" width="16" height="16" aria-hidden="true">
      <rect x="0.5" y="0.5" width="15" height="15" rx="3" fill={`url(#${prefix}${kind})`} class="edge" />
    </svg>
  );
});
