/** How sure a number is: a word and a mark, never a colour alone. */
import { useText } from "../i18n";
import type { Grade } from "../types";

const MARKS: Record<string, string> = { exact: "=", measured: "≈", assumed: "~" };

/** The grade of a number. */
export function GradeMark({ grade }: { grade: Grade | string }) {
  const { w } = useText();
  return <span class={`grade grade-${grade}`}><span aria-hidden="true">{MARKS[grade] ?? "?"}</span>{w("grade", grade)}</span>;
}
