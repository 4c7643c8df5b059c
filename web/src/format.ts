/** Numbers for reading: three significant figures with their unit, exact figures in full. */

const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] as const;

/** Three significant figures, no exponent, thousands apart. */
export function three(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1000) return Math.round(value).toLocaleString("en-US");
  const digits = size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  return value.toFixed(digits);
}

/** Bytes with a binary unit: `29.7 GiB`. */
export function bytes(value: number | bigint): string {
  let size = Number(value);
  let unit = 0;
  while (Math.abs(size) >= 1023.95 && unit < BINARY.length - 1) {
    size /= 1024;
    unit += 1;
  }
  const text = unit === 0 && Number.isInteger(size) ? size.toString() : three(size);
  return `${text} ${BINARY[unit]}`;
}

/** Bytes in full: `31,912,542,061 bytes`. */
export function exactBytes(value: number | bigint): string {
  return `${value.toLocaleString("en-US")} B`;
}

/** A count in full: `32,768`. */
export function count(value: number | bigint): string {
  return value.toLocaleString("en-US");
}

/** Tokens on an axis or a slider: `32k`, `1M` where they are whole, in 1024s. */
export function shortTokens(value: number): string {
  if (value >= 1048576 && value % 1048576 === 0) return `${value / 1048576}M`;
  if (value >= 1024 && value % 1024 === 0) return `${value / 1024}k`;
  if (value >= 10240) return `${three(value / 1024)}k`;
  return count(value);
}

/** Parameters: `8.19 B`. */
export function parameters(value: number): string {
  for (const [size, unit] of [[1e12, "T"], [1e9, "B"], [1e6, "M"], [1e3, "K"]] as const) {
    if (value >= size) return `${three(value / size)} ${unit}`;
  }
  return String(value);
}

/** A share: `77.2 %`. */
export function percent(part: number, whole: number): string {
  if (!whole) return "—";
  return `${three((100 * part) / whole)} %`;
}

/** Tokens as people write them: `128k`, `1m`, `131,072`; null for what is no count. */
export function parseTokens(text: string): number | null {
  const found = /^\s*(\d[\d,_ ]*(?:\.\d+)?)\s*([kKmM]?)\s*$/.exec(text);
  if (!found) return null;
  const scale = { "": 1, k: 1024, m: 1048576 }[(found[2] ?? "").toLowerCase()] ?? 1;
  const value = Number((found[1] ?? "").replace(/[,_ ]/g, "")) * scale;
  return Number.isFinite(value) && value >= 1 ? Math.round(value) : null;
}

/** A signed share of one, in percent: `+0.03 %`. */
export function signedPercent(fraction: number): string {
  const text = (100 * fraction).toFixed(2);
  return `${Number(text) === 0 ? "0.00" : fraction > 0 ? `+${text}` : text.replace("-", "\u2212")} %`;
}
