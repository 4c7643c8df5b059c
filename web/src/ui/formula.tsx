/** A formula of the library, its symbols set as symbols. */
import type { JSX } from "preact";

const TOKENS = /([A-Za-z]+(?:_[A-Za-z0-9]+)*)|([^A-Za-z]+)/g;
const WORDS = new Set(["ceil", "floor", "min", "max", "round", "log2", "sum", "B"]);

/** The formula as inline elements; `plain` names are set upright. */
export function Formula({ text, numbers = false }: { text: string; numbers?: boolean }) {
  if (numbers) return <span class="formula">{text}</span>;
  const found: (JSX.Element | string)[] = [];
  for (const [whole, name] of text.matchAll(TOKENS)) {
    if (!name || (WORDS.has(name) && name !== "B") || name.length > 12) {
      found.push(whole);
      continue;
    }
    const [head, ...tail] = name.split("_");
    found.push(<var>{head}{tail.length ? <sub>{tail.join(",")}</sub> : null}</var>);
  }
  return <span class="formula">{found}</span>;
}
