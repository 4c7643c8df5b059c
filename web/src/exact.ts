/** The library's terms, evaluated exactly: bytes(T) = fixed + sum of bytes_per_step x round((min(T, to) - from)+ / step). */
import type { CacheAnswer, Term } from "./types";

/** Bytes of one term at a context of `tokens`. */
export function termBytes(term: Term, tokens: bigint): bigint {
  const end = term.to_tokens === null || tokens < BigInt(term.to_tokens) ? tokens : BigInt(term.to_tokens);
  const span = end - BigInt(term.from_tokens);
  if (span <= 0n) return 0n;
  const step = BigInt(term.step_tokens);
  const steps = term.rounding === "ceil" ? (span + step - 1n) / step : span / step;
  return BigInt(term.bytes_per_step) * steps;
}

/** Bytes of a fixed part and its terms at a context of `tokens`. */
export function bytesAt(fixed: number, terms: readonly Term[], tokens: number): bigint {
  const at = BigInt(Math.max(0, Math.floor(tokens)));
  return terms.reduce((sum, term) => sum + termBytes(term, at), BigInt(fixed));
}

/** Bytes of one sequence of a cache answer. */
export function sequenceBytes(cache: CacheAnswer, tokens: number): bigint {
  return bytesAt(cache.fixed_bytes_per_sequence, cache.terms, tokens);
}

/** Bytes on the fullest rank for all sequences; null where the library gives no terms of it. */
export function rankBytes(cache: CacheAnswer, sequences: number, replicas: number, tokens: number): bigint | null {
  const rank = cache.rank_terms;
  if (!rank) return null;
  return BigInt(Math.ceil(sequences / Math.max(1, replicas))) * bytesAt(rank.fixed_bytes, rank.terms, tokens);
}

/** Bytes of each rank at a load of the sliders: ranks that hold as much as the fullest follow it at once. */
export function heldBytes(cache: CacheAnswer, sequences: number, replicas: number, tokens: number): number[] {
  const now = rankBytes(cache, sequences, replicas, tokens);
  const full = cache.per_rank_bytes[cache.rank_terms?.rank ?? 0];
  return cache.per_rank_bytes.map((size) => (now !== null && size === full ? Number(now) : size));
}

/** Contexts at which the slope changes, from 0 to `end`, both included. */
export function bends(terms: readonly Term[], end: number): number[] {
  const points = new Set([0, end]);
  for (const term of terms) {
    for (const at of [term.from_tokens, term.to_tokens]) if (at !== null && at > 0 && at < end) points.add(at);
  }
  return [...points].sort((a, b) => a - b);
}
