/** An error of the library: what is wrong, and what to do. */
import { useText } from "../i18n";
import type { ErrorBody } from "../types";
import { Icon } from "../ui/icons";

/** One error, said where it belongs. */
export function Problem({ error }: { error: ErrorBody }) {
  const { t } = useText();
  return (
    <div class="problem" role="alert">
      <Icon name="warn" />
      <div>
        <p><b>{error.code === "unreachable" ? t("error.unreachable") : error.message}</b></p>
        {error.hint ? <p>{error.hint}</p> : null}
        <p class="source">{error.code}{error.field ? ` · ${error.field}` : ""}</p>
      </div>
    </div>
  );
}
