/** The one state of the page: the question (mirrored in the address), the language, and who wants to know. */
import { useLayoutEffect, useState } from "preact/hooks";
import { DEFAULTS, readAddress, writeAddress, type Question } from "./question";

export type Language = "en" | "zh";

interface Page {
  question: Question;
  language: Language;
  /** What the address said that was not understood. */
  ignored: readonly string[];
}

const listeners = new Set<() => void>();
const newest = new Map<string, string>();
let page: Page = { question: { ...DEFAULTS }, language: "en", ignored: [] };
let written = "";
let timer = 0;

function languageOf(named: string | null): Language {
  if (named === "en" || named === "zh") return named;
  const kept = stored("kvgauge.lang");
  if (kept === "en" || kept === "zh") return kept;
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}

/** A preference kept in this browser, null where storage is closed. */
export function stored(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

/** Keep a preference in this browser. */
export function store(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // A closed storage costs the preference, nothing else.
  }
}

function tell(): void {
  for (const listener of listeners) listener();
}

/** Take the question from the address. */
export function load(): void {
  const { question, language, ignored } = readAddress(location.hash);
  page = { question, language: languageOf(language), ignored };
  document.documentElement.lang = page.language === "zh" ? "zh-CN" : "en";
  tell();
}

/** Take notice of the version that an engine's name alone means to this server. */
export function knowNewest(engine: string, version: string | null): void {
  if (version) newest.set(engine, version);
}

/** The question with the version of its engine named, so that it means the same to a later server. */
export function pinned(question: Question): Question {
  return { ...question, version: question.version || (newest.get(question.engine) ?? "") };
}

/** The address of the present view, complete with the server it is on and the version of the engine. */
export function permalink(): string {
  return location.href.split("#")[0] + writeAddress(pinned(page.question), page.language);
}

function writeSoon(push: boolean): void {
  const write = () => {
    timer = 0;
    const address = writeAddress(page.question, page.language);
    if (address === location.hash) return;
    written = address;
    if (push) history.pushState(null, "", address);
    else history.replaceState(null, "", address);
  };
  clearTimeout(timer);
  if (push) write();
  else timer = window.setTimeout(write, 120);
}

/** Change the question; a new view is a new entry of the browser's history. */
export function ask(change: Partial<Question>): void {
  const push = change.view !== undefined && change.view !== page.question.view;
  page = { ...page, question: { ...page.question, ...change }, ignored: [] };
  writeSoon(push);
  tell();
}

/** Change the language, and nothing else. */
export function speak(language: Language): void {
  page = { ...page, language };
  store("kvgauge.lang", language);
  document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
  writeSoon(false);
  tell();
}

/** The present state. */
export function current(): Page {
  return page;
}

const whole = (of: Page) => of;
const languageIn = (of: Page) => of.language;

/** A part of the present state, for a component that is drawn anew only where that part changes. */
export function useFollowed<T>(of: (page: Page) => T): T {
  const [seen, setSeen] = useState(() => of(page));
  useLayoutEffect(() => {
    const listener = () => setSeen(() => of(page));
    listeners.add(listener);
    listener();
    return () => void listeners.delete(listener);
  }, []);
  return seen;
}

/** The present state, for a component that follows it. */
export function usePage(): Page {
  return useFollowed(whole);
}

/** The language alone: a component that needs no more is not drawn anew with every move of a slider. */
export function useLanguage(): Language {
  return useFollowed(languageIn);
}

window.addEventListener("hashchange", () => {
  if (location.hash !== written) load();
});
window.addEventListener("popstate", load);
