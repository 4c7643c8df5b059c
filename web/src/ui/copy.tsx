/** Copying and saving: a button that says when it has done so. */
import { useState } from "preact/hooks";
import { useText } from "../i18n";
import { Icon, type IconName } from "./icons";

async function toClipboard(text: string): Promise<void> {
  if (navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(text);
      return;
    } catch {
      // Refused, or no secure context: the old way below.
    }
  }
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "offscreen";
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

interface Props {
  label: string;
  text: () => string | Promise<string>;
  icon?: IconName;
  bare?: boolean;
}

/** A button that copies what `text` gives when pressed. */
export function CopyButton({ label, text, icon = "copy", bare = false }: Props) {
  const { t } = useText();
  const [done, setDone] = useState(false);
  const press = async () => {
    await toClipboard(await text());
    setDone(true);
    setTimeout(() => setDone(false), 1600);
  };
  return (
    <button type="button" class={`button small ${bare ? "bare" : ""}`} onClick={press} aria-label={label} title={label}>
      <Icon name={done ? "check" : icon} />
      <span aria-live="polite">{done ? t("copy.done") : label}</span>
    </button>
  );
}

/** Hand a file to the browser. */
export function saveFile(name: string, content: Blob): void {
  const address = URL.createObjectURL(content);
  const anchor = document.createElement("a");
  anchor.href = address;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
