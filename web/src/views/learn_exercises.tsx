/** Questions to the chapters; an answer is checked by the library, which computes its own. */
import { useState } from "preact/hooks";
import { ApiError, post } from "../api";
import { bytes, count, exactBytes } from "../format";
import { useText } from "../i18n";
import type { ErrorBody } from "../types";
import { Icon } from "../ui/icons";
import { Problem } from "./problem";

type Languages = Record<string, string>;

/** One question of `learn exercises`. */
export interface Exercise {
  id: string;
  chapter: string;
  unit: string;
  question: Languages;
}

interface Checked {
  given: number;
  is_right: boolean;
  solution: number;
  why: Languages;
}

function solution(exercise: Exercise, value: number): string {
  if (exercise.unit === "bytes") return `${bytes(value)} (${exactBytes(value)})`;
  return Number.isInteger(value) ? count(value) : String(value);
}

function Question({ exercise, number }: { exercise: Exercise; number: number }) {
  const { t, w, language } = useText();
  const [text, setText] = useState("");
  const [checked, setChecked] = useState<Checked | null>(null);
  const [error, setError] = useState<ErrorBody | null>(null);
  const check = async () => {
    setError(null);
    try {
      setChecked(await post<Checked>("learn/exercises", { exercise: exercise.id, answer: text, lang: language }));
    } catch (problem) {
      setChecked(null);
      setError(problem instanceof ApiError ? problem.body : { code: "page", message: String(problem), hint: null, field: null });
    }
  };
  const id = `exercise-${exercise.id}`;
  return (
    <li class={`card exercise ${checked ? (checked.is_right ? "is-right" : "is-wrong") : ""}`}>
      <form onSubmit={(event) => { event.preventDefault(); if (text.trim()) void check(); }}>
        <label for={id}><span class="quiet">{number} · {exercise.chapter}</span>{exercise.question[language] ?? exercise.question.en}</label>
        <div class="exercise-answer">
          <input id={id} class="text" autocomplete="off" value={text} placeholder={w("unitOf", exercise.unit)} onInput={(event) => setText(event.currentTarget.value)} />
          <button type="submit" class="button" disabled={!text.trim()}>{t("learn.check")}</button>
        </div>
      </form>
      <div aria-live="polite">
        {checked ? (
          <p class="exercise-result"><Icon name={checked.is_right ? "check" : "cross"} /> <b>{t(checked.is_right ? "learn.right" : "learn.wrong", { solution: solution(exercise, checked.solution) })}</b> {checked.why[language] ?? checked.why.en}</p>
        ) : null}
        {error ? <Problem error={error} /> : null}
      </div>
    </li>
  );
}

/** All questions. */
export function Exercises({ exercises }: { exercises: Exercise[] }) {
  return <ol class="exercises wide">{exercises.map((exercise, at) => <Question key={exercise.id} exercise={exercise} number={at + 1} />)}</ol>;
}
