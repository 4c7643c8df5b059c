/** Answers as Markdown, for an issue or a chat. */
import { bytes, count } from "./format";
import type { Say } from "./i18n";
import type { CompareAnswer, FitAnswer, SizeAnswer } from "./types";

/** A table; the first column on the left, figures on the right. */
export function table(head: string[], rows: (string | number)[][]): string {
  const line = (cells: (string | number)[]) => `| ${cells.map((cell) => String(cell).replace(/\|/g, "\\|")).join(" | ")} |`;
  return [line(head), line(head.map((_, at) => (at ? "---:" : "---"))), ...rows.map(line)].join("\n");
}

/** A fit. */
export function fitMarkdown(fit: FitAnswer, status: string, kind: (name: string) => string, t: Say): string {
  const devices = fit.devices.flatMap((device) => device.allocations.map((one) => [device.place, kind(one.name), bytes(one.bytes), one.grade]));
  return [
    `**${fit.model.id}: ${status}**, ${fit.verdict.sentence}`,
    "",
    table([t("bars.device"), t("parts.name"), t("parts.bytes"), t("parts.grade")], devices),
    "",
    "```",
    fit.launch_command,
    "```",
  ].join("\n");
}

/** A size. */
export function sizeMarkdown(size: SizeAnswer, headline: string, t: Say): string {
  const rows = (size.engine?.allocations ?? []).map((one) => [one.place, one.name, bytes(one.bytes), one.grade]);
  return [`**${headline}**`, "", table([t("bars.device"), t("parts.name"), t("parts.bytes"), t("parts.grade")], rows)].join("\n");
}

/** A comparison. */
export function compareMarkdown(answer: CompareAnswer, t: Say): string {
  const rows = answer.rows.map((row) =>
    "error" in row
      ? [row.error.message, "—", "—", "—"]
      : [row.model.id, bytes(row.cache.total_bytes), bytes(row.cache.growth_bytes_per_token), row.weights ? bytes(row.weights.total_bytes) : "—"],
  );
  return table([t("ask.model"), t("compare.cache"), t("growth.perToken"), t("kind.weights")], rows);
}

export { count };
