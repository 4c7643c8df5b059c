/** The page: head, question on the left, answer on the right, foot. */
import { useEffect, useState } from "preact/hooks";
import { get } from "../api";
import { useText } from "../i18n";
import { useAnswer, useRested } from "../state/answers";
import { VIEWS, type Question } from "../state/question";
import { compareBody, fitBody, planBody, sizeBody } from "../state/request";
import { remember } from "../state/recent";
import { ask, knowNewest, speak, store, stored, useFollowed, usePage, type Language } from "../state/store";
import type { CompareAnswer, EngineRow, FitAnswer, PlanAnswer, SizeAnswer } from "../types";
import { Icon, type IconName } from "../ui/icons";
import { kept } from "../ui/kept";
import { AnswerView } from "./answer";
import { Ask } from "./ask";
import { CompareAsk, CompareView } from "./compare";
import { Drawer } from "./drawer";
import { LearnAsk, LearnView } from "./learn";
import { DropZone, PasteDialog } from "./paste";
import { PlanView } from "./plan";
import { VerifyAsk, VerifyView } from "./verify";

const THEMES: readonly { name: string; icon: IconName }[] = [{ name: "auto", icon: "auto" }, { name: "light", icon: "sun" }, { name: "dark", icon: "moon" }];

function ThemeSwitch() {
  const { t } = useText();
  const [theme, setTheme] = useState(stored("kvgauge.theme") ?? "auto");
  const choose = (name: string) => {
    setTheme(name);
    store("kvgauge.theme", name);
    if (name === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
  };
  return (
    <div class="switch" role="group" aria-label={t("theme.title")}>
      {THEMES.map(({ name, icon }) => (
        <button type="button" aria-pressed={theme === name} aria-label={t(`theme.${name}` as "theme.auto")} title={t(`theme.${name}` as "theme.auto")} onClick={() => choose(name)}><Icon name={icon} /></button>
      ))}
    </div>
  );
}

function LanguageSwitch() {
  const { t, language } = useText();
  const names: [Language, string, string][] = [["en", "EN", "EN: English"], ["zh", "中文", "中文"]];
  return (
    <div class="switch" role="group" aria-label={t("language.title")}>
      {names.map(([code, short, name]) => (
        <button type="button" lang={code === "zh" ? "zh-CN" : "en"} aria-pressed={language === code} aria-label={name} title={name} onClick={() => speak(code)}>{short}</button>
      ))}
    </div>
  );
}

const Head = kept(function Head() {
  const { t } = useText();
  const shown = useFollowed(viewOf);
  return (
    <header class="top">
      <a class="brand" href="#fit" aria-label="kvgauge">
        <svg viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="7" class="brand-ground" /><path d="M8 22V10M8 16.5h4l5-6.5M12 16.5l5.5 5.5" class="brand-line" /><rect x="21" y="9" width="3.6" height="14" rx="1.2" class="brand-bar" /></svg>
        <span>kvgauge</span>
      </a>
      <nav aria-label={t("nav.title")}>
        {VIEWS.map((view) => (
          <a href={`#${view}`} aria-current={shown === view ? "page" : undefined}
            onClick={(event) => {
              event.preventDefault();
              ask({ view });
            }}>{t(`nav.${view}` as "nav.fit")}</a>
        ))}
      </nav>
      <div class="top-tools"><LanguageSwitch /><ThemeSwitch /></div>
    </header>
  );
});

const viewOf = ({ question }: { question: Question }) => question.view;

/** The engines that the library knows; asked for once. */
function useEngines(language: string): EngineRow[] {
  const [rows, setRows] = useState<EngineRow[]>([]);
  useEffect(() => {
    get<{ engines: EngineRow[] }>("engines", { lang: language }).then(({ engines }) => {
      for (const row of engines) knowNewest(row.name, row.newest_version);
      setRows(engines);
    }, () => undefined);
  }, []);
  return rows;
}

const ignoredIn = ({ ignored }: { ignored: readonly string[] }) => ignored;

/** What of the address was not understood, until the question changes. */
function Ignored() {
  const { t } = useText();
  const ignored = useFollowed(ignoredIn);
  return (
    <div role="status">
      {ignored.length ? <p class="ignored"><Icon name="warn" /><span>{t("address.ignored")} {ignored.map((text) => <code>{text}</code>)}</span></p> : null}
    </div>
  );
}

/** Everything. */
export function App() {
  const { t, language } = useText();
  const { question } = usePage();
  const { view } = question;
  const engines = useEngines(language);
  const asksModel = view === "fit" || view === "plan";
  const named = Boolean(question.config || question.model.trim());
  const size = useAnswer<SizeAnswer>("size", asksModel && named ? { ...sizeBody(question), lang: language } : null);
  const wanted = view === "fit" && named && question.target !== "size" ? { ...fitBody(question), lang: language } : null;
  const quick = useAnswer<FitAnswer>("fit", wanted && { ...wanted, suggestions: false });
  const whole = useAnswer<FitAnswer>("fit", useRested(wanted));
  // What would help is asked for once the question rests; until then the verdict stands without it.
  const fit = whole.value && !whole.stale ? whole : quick;
  const plan = useAnswer<PlanAnswer>("plan", view === "plan" && named ? { ...planBody(question), lang: language } : null);
  const compare = useAnswer<CompareAnswer>("compare", view === "compare" && question.models.length ? { ...compareBody(question), lang: language } : null);
  const answered = size.value?.request.context_tokens ?? fit.value?.request.context_tokens ?? 32768;
  const context = question.context > 0 ? question.context : answered;
  useEffect(() => {
    if (size.value?.model.source === "catalogue" || size.value?.model.source === "hub") remember(size.value.model.id);
  }, [size.value?.model.id]);
  useEffect(() => {
    document.title = view === "compare" ? `${t("nav.compare")} · kvgauge` : asksModel ? `${question.configName || question.model} · kvgauge` : `${t(`nav.${view}` as "nav.fit")} · kvgauge`;
  }, [view, question.model, question.configName, language]);
  return (
    <>
      <a class="skip" href="#answer" onClick={(event) => { event.preventDefault(); document.getElementById("answer")?.focus(); }}>{t("skip")}</a>
      <Head />
      <main class={`page page-${view}`}>
        <aside class="left">
          {asksModel ? <Ask engines={engines} model={size.value?.model ?? fit.value?.model ?? null} context={context} numGpus={fit.value?.request.num_gpus ?? null} /> : view === "compare" ? <CompareAsk engines={engines} /> : view === "verify" ? <VerifyAsk /> : <LearnAsk />}
        </aside>
        <section id="answer" class="pane" tabIndex={-1} aria-label={t("answer.title")}>
          <Ignored />
          {view === "fit" ? <AnswerView fit={fit} size={size} context={context} /> : null}
          {view === "plan" ? <PlanView answer={plan} /> : null}
          {view === "compare" ? <CompareView answer={compare} /> : null}
          {view === "verify" ? <VerifyView /> : null}
          {view === "learn" ? <LearnView /> : null}
        </section>
      </main>
      <footer class="foot">
        <span>{t("foot.local")}</span>
        <a href="api/v1/openapi.json">OpenAPI</a>
      </footer>
      <Drawer />
      <PasteDialog />
      <DropZone />
    </>
  );
}
