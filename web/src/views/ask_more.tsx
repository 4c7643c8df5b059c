/** What is rarely asked: splits, speculation, shared prefixes, shares of the card, changed config fields. */
import type { Question } from "../state/question";
import { ask, usePage } from "../state/store";
import { useText, type Text } from "../i18n";

const COUNTS = ["tp", "pp", "dp", "ep", "dcp", "mtp"] as const;

/** How many of the rare fields are set. */
function numSet(question: Question): number {
  const texts = [question.prefix, question.utilization, question.reserve, question.override, question.args];
  return COUNTS.filter((name) => question[name]).length + texts.filter((text) => text.trim()).length;
}

/** The closed part of the panel. */
export function More() {
  const { t } = useText();
  const { question } = usePage();
  const set = numSet(question);
  const text = (name: "prefix" | "utilization" | "reserve" | "override", placeholder: string) => (
    <div class={`field ${name === "override" ? "wide" : ""}`}>
      <label for={name}>{t(`ask.${name}` as Text)}</label>
      <input id={name} class="text" autocomplete="off" spellcheck={false} value={question[name]} placeholder={placeholder}
        onChange={(event) => ask({ [name]: event.currentTarget.value.trim() })} />
    </div>
  );
  return (
    <details class="group more" open={set > 0}>
      <summary>{t("ask.more")}{set ? <span class="badge">{set}</span> : null}</summary>
      <div class="field">
        <label for="args">{t("ask.args")}</label>
        <input id="args" class="text mono" spellcheck={false} autocomplete="off" value={question.args} placeholder="--max-num-batched-tokens 8192"
          onChange={(event) => ask({ args: event.currentTarget.value })} />
      </div>
      <div class="grid three">
        {COUNTS.map((name) => (
          <div class="field">
            <label for={name}>{t(`ask.${name}` as Text)}</label>
            <input id={name} class="text" type="number" min={0} max={1024} value={question[name] || ""} placeholder="—"
              onChange={(event) => ask({ [name]: Math.max(0, Math.min(1024, Math.floor(Number(event.currentTarget.value) || 0))) })} />
          </div>
        ))}
      </div>
      <div class="grid three">
        {text("prefix", "0")}
        {text("utilization", "0.92")}
        {text("reserve", "2GiB")}
      </div>
      {text("override", "num_key_value_heads=8; …")}
    </details>
  );
}
