/** The concepts of a cache, run by the library: a walk through a model, and what each mechanism holds. */
import { useEffect, useState } from "preact/hooks";
import { get } from "../api";
import { count, parseTokens } from "../format";
import { useText } from "../i18n";
import { useAnswer } from "../state/answers";
import { LEARN_MODEL, LEARN_TOKENS } from "../state/topics";
import type { Question } from "../state/question";
import { ask, usePage } from "../state/store";
import { Combobox } from "../ui/combobox";
import { Slider } from "../ui/slider";
import { findModels } from "./ask";
import { Problem } from "./problem";
import { Share } from "./share";
import { TopicView, type TopicAnswer } from "./learn_topics";
import { WalkView, type Walk } from "./learn_walk";

interface TopicRow {
  name: string;
  argument: string;
  summary: string;
}

/** The walk's text where none is given: the library's own. */
export const WALK = "walk";

function topicOf(question: Question): string {
  return question.topic || WALK;
}

function bodyOf(question: Question, language: string): Record<string, unknown> {
  const topic = topicOf(question);
  const body: Record<string, unknown> = { lang: language, drawn: true };
  if (topic === WALK) {
    if (question.prompt) body.text = question.prompt;
    body.new_tokens = question.newTokens;
    return body;
  }
  if (LEARN_MODEL.has(topic)) body.model = question.model;
  if (LEARN_TOKENS.has(topic) && question.context > 0) body.tokens = question.context;
  return body;
}

/** What to look at. */
export function LearnAsk() {
  const { t, w, language } = useText();
  const { question } = usePage();
  const [topics, setTopics] = useState<TopicRow[]>([]);
  useEffect(() => {
    get<{ topics: TopicRow[] }>("learn", { lang: language }).then((answer) => setTopics(answer.topics), () => undefined);
  }, [language]);
  const topic = topicOf(question);
  return (
    <form class="ask" aria-label={t("ask.title")} onSubmit={(event) => event.preventDefault()}>
      <fieldset class="group">
        <legend>{t("learn.topics")}</legend>
        <ul class="topics">
          {topics.map((row) => (
            <li key={row.name}>
              <button type="button" aria-pressed={row.name === topic} onClick={() => ask({ topic: row.name === WALK ? "" : row.name, step: 0 })}>
                <b>{w("topic", row.name)}</b><small>{row.summary}</small>
              </button>
            </li>
          ))}
        </ul>
      </fieldset>
      {topic === WALK ? (
        <fieldset class="group">
          <legend>{t("learn.text")}</legend>
          <div class="field">
            <label for="prompt">{t("learn.prompt")}</label>
            <input id="prompt" class="text" autocomplete="off" value={question.prompt} placeholder="今天天气" onChange={(event) => ask({ prompt: event.currentTarget.value, step: 0 })} />
          </div>
          <p class="hint">{t("learn.prompt.hint")}</p>
          <Slider label={t("learn.newTokens")} unit={t("unit.tokens")} value={question.newTokens} low={1} high={32} grain={() => 1} show={count} parse={parseTokens} onChange={(newTokens) => ask({ newTokens: Math.min(newTokens, 64) })} />
        </fieldset>
      ) : LEARN_MODEL.has(topic) || LEARN_TOKENS.has(topic) ? (
        <fieldset class="group">
          <legend>{t("ask.group.load")}</legend>
          {LEARN_MODEL.has(topic) ? <Combobox label={t("ask.model")} value={question.model} find={findModels} nothing={t("ask.model.none")} onChoose={(model) => ask({ model })} /> : null}
          <Slider label={t("ask.context")} unit={t("unit.tokens")} value={question.context > 0 ? question.context : 32768} low={256} high={262144} grain={(value) => (value < 16384 ? 256 : 4096)} show={count} parse={parseTokens} onChange={(context) => ask({ context })} />
        </fieldset>
      ) : null}
    </form>
  );
}

/** What is shown. */
export function LearnView() {
  const { t, w, language } = useText();
  const { question } = usePage();
  const topic = topicOf(question);
  const answer = useAnswer<Walk & TopicAnswer>(`learn/${topic}`, bodyOf(question, language));
  if (answer.error) return <div class="answer"><Problem error={answer.error} /></div>;
  const value = answer.value;
  if (!value || value.schema !== `kvgauge.learn_${topic}/1`) return <div class="answer"><div class="card skeleton" role="status">{t("loading")}</div></div>;
  return (
    <div class="answer learn" aria-busy={answer.stale}>
      {topic === WALK ? <WalkView walk={value} /> : <TopicView topic={topic} answer={value} />}
      <Share json={value} markdown={() => ["```", value.drawn ?? w("topic", topic), "```"].join("\n")} />
    </div>
  );
}
