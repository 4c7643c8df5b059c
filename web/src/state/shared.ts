/** A new answer that keeps the parts of the last one that did not change, so that they need not be drawn anew. */

/** `next`, with every part that equals its counterpart in `last` being that counterpart. */
export function shared<T>(last: unknown, next: T): T {
  if (Object.is(last, next)) return next;
  if (typeof last !== "object" || typeof next !== "object" || last === null || next === null) return next;
  if (Array.isArray(last) !== Array.isArray(next)) return next;
  const before = last as Record<string, unknown>;
  const after = next as Record<string, unknown>;
  const names = Object.keys(after);
  let same = names.length === Object.keys(before).length;
  for (const name of names) {
    const part = shared(before[name], after[name]);
    after[name] = part;
    if (!(name in before) || !Object.is(part, before[name])) same = false;
  }
  return same ? (last as T) : next;
}
