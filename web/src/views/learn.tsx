/** The concepts of a cache, run: filled in from the library's "learn". */
import { useText } from "../i18n";

/** What to look at. */
export function LearnAsk() {
  const { t } = useText();
  return <form class="ask" aria-label={t("ask.title")}><fieldset class="group"><legend>{t("nav.learn")}</legend><p class="hint">{t("learn.soon")}</p></fieldset></form>;
}

/** What is shown. */
export function LearnView() {
  const { t } = useText();
  return <div class="answer"><div class="card empty"><h1>{t("nav.learn")}</h1><p>{t("learn.soon")}</p></div></div>;
}
