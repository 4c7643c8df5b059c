/** From answers to what is drawn: bars of a fit, bars of a size. Figures of the API, sorted into parts. */
import type { Bar, Segment } from "../charts/bars";
import { kindOf } from "../charts/kinds";
import type { Allocation, Device, FitAnswer, SizeAnswer } from "../types";
import type { Part } from "../ui/derivation";

/** How many identical devices are drawn one by one. */
const MAX_BARS = 16;

/** Allocations as rows of a derivation. */
export function asParts(allocations: readonly Allocation[], name: (allocation: Allocation) => string): Part[] {
  return allocations.map((one) => ({
    name: name(one),
    bytes: one.bytes,
    low: one.low_bytes,
    high: one.high_bytes,
    grade: one.grade,
    because: one.because,
  }));
}

/** The parts of one device: the pool is what this load holds of it, and the rest. */
export function deviceSegments(device: Device, held: number | null): Segment[] {
  const segments: Segment[] = [];
  for (const one of device.allocations) {
    if (one.kind === "cache" && held !== null) {
      segments.push({ kind: "cache", bytes: Math.min(held, Math.max(0, one.bytes)) });
      if (held > one.bytes) segments.push({ kind: "short", bytes: held - Math.max(0, one.bytes) });
      else segments.push({ kind: "pool", bytes: one.bytes - held });
    } else if (one.bytes > 0) {
      segments.push({ kind: kindOf(one.kind), bytes: one.bytes });
    }
  }
  return segments;
}

/** One bar a device of a fit; the cache that this load holds is the size's figure of the same rank. */
export function fitBars(fit: FitAnswer, held: readonly number[], label: (rank: number) => string): Bar[] {
  return fit.devices.slice(0, MAX_BARS).map((device) => ({
    label: label(device.rank),
    segments: deviceSegments(device, held[device.rank] ?? null),
    capacity: device.memory_bytes,
  }));
}

/** One bar a rank of a size: what the engine sets aside, without a card. */
export function sizeBars(size: SizeAnswer, label: (place: string) => string): Bar[] {
  const places = new Map<string, Segment[]>();
  for (const one of size.engine?.allocations ?? []) {
    const segments = places.get(one.place) ?? [];
    segments.push({ kind: kindOf(one.kind), bytes: one.bytes });
    places.set(one.place, segments);
  }
  return [...places].slice(0, MAX_BARS).map(([place, segments]) => ({ label: label(place), segments, capacity: null }));
}

/** The fullest device: least free, or the first. */
export function fullest(fit: FitAnswer): Device | null {
  return fit.devices.reduce<Device | null>((worst, device) => (worst === null || (device.free_bytes ?? 0) < (worst.free_bytes ?? 0) ? device : worst), null);
}
