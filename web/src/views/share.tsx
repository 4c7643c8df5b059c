/** Taking the answer along: link, command, JSON, Markdown. */
import { commandOf } from "../state/request";
import { permalink, pinned, usePage } from "../state/store";
import { useText } from "../i18n";
import { CopyButton } from "../ui/copy";

interface Props {
  json: unknown;
  markdown: () => string | Promise<string>;
}

/** The row of copy buttons. */
export function Share({ json, markdown }: Props) {
  const { t } = useText();
  const { question } = usePage();
  return (
    <div class="share" role="group" aria-label={t("share.title")}>
      <span class="share-label">{t("share.title")}</span>
      <CopyButton label={t("share.link")} icon="link" text={permalink} />
      <CopyButton label={t("share.command")} icon="terminal" text={() => commandOf(pinned(question))} />
      <CopyButton label="JSON" text={() => JSON.stringify(json, null, 2)} />
      <CopyButton label="Markdown" text={markdown} />
    </div>
  );
}
