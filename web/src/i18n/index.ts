/** Every word of the page, in two tables of the same keys. What the library says comes from it in `lang`. */
import { useLanguage } from "../state/store";
import { en } from "./en";
import { zh } from "./zh";

export type Text = keyof typeof en;
export type Say = (key: Text, values?: Record<string, string | number>) => string;

const TABLES: Record<string, Record<Text, string>> = { en, zh };

/** The text of a key, its {names} filled in. */
export function say(language: string, key: Text, values: Record<string, string | number> = {}): string {
  const text = TABLES[language]?.[key] ?? en[key];
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}

/** The text of a word of the API (`kind.weights`), or the word itself where the tables don't have it. */
export function word(language: string, group: string, name: string): string {
  const key = `${group}.${name}` as Text;
  return TABLES[language]?.[key] ?? name.replace(/_/g, " ");
}

/** `say` and `word` in the language of the page. */
export function useText(): { t: Say; w: (group: string, name: string) => string; language: string } {
  const language = useLanguage();
  return {
    t: (key, values) => say(language, key, values),
    w: (group, name) => word(language, group, name),
    language,
  };
}
