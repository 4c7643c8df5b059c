/** A number that opens its derivation. */
import { bytes, exactBytes } from "../format";
import { useText } from "../i18n";
import { derive, type Topic } from "./derivation";

interface Props {
  value: number | bigint;
  /** Its text, where it is no size in bytes. */
  text?: string;
  topic: Omit<Topic, "value">;
  class?: string;
}

/** A number as a button. */
export function Num({ value, text, topic, class: extra = "" }: Props) {
  const { t } = useText();
  const shown = text ?? bytes(value);
  const exact = text === undefined ? exactBytes(value) : undefined;
  const open = () => derive({ ...topic, value: shown, ...(exact && !topic.exact ? { exact } : {}) });
  return (
    <button type="button" class={`num ${extra}`} title={exact ?? topic.title} onClick={open}
      aria-label={t("num.label", { value: shown, title: topic.title })}>
      {shown}
    </button>
  );
}
