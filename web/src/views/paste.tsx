/** The dialog to paste a config or a launch command into, and what happens to files that are dropped. */
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "../api";
import { bytes } from "../format";
import { useText } from "../i18n";
import { isCommand, readCommand, readConfig, sendGguf } from "../state/sources";
import { ask, current } from "../state/store";
import { Icon } from "../ui/icons";
import { takeLog } from "./verify_log";

type Kind = "config" | "command";

let open: ((kind: Kind) => void) | null = null;

/** Open the dialog. */
export function openPaste(kind: Kind): void {
  open?.(kind);
}

/** The dialog. */
export function PasteDialog() {
  const { t, language } = useText();
  const place = useRef<HTMLDialogElement>(null);
  const file = useRef<HTMLInputElement>(null);
  const [kind, setKind] = useState<Kind>("config");
  const [text, setText] = useState("");
  const [problem, setProblem] = useState("");
  useEffect(() => {
    open = (wanted) => {
      setKind(wanted);
      setText("");
      setProblem("");
      place.current?.showModal();
    };
    return () => void (open = null);
  }, []);
  const close = () => place.current?.close();
  const use = async () => {
    if (kind === "config" && !isCommand(text)) {
      const found = readConfig(text);
      if ("problem" in found) return setProblem(t(found.problem));
      ask({ config: found.config, configName: "config.json", ...asFit() });
      return close();
    }
    try {
      ask({ ...(await readCommand(text, language)), ...asFit() });
      close();
    } catch (error) {
      setProblem(error instanceof ApiError ? [error.body.message, error.body.hint].filter(Boolean).join(" · ") : String(error));
    }
  };
  return (
    <dialog ref={place} class="dialog" aria-labelledby="paste-title" onClick={(event) => event.target === place.current && close()}>
      <div class="dialog-body">
        <header><h2 id="paste-title">{t(`paste.${kind}.title`)}</h2><button type="button" class="button bare" aria-label={t("close")} onClick={close}><Icon name="close" /></button></header>
        <textarea class="text mono" rows={10} aria-label={t(`paste.${kind}.title`)} spellcheck={false} value={text} placeholder={t(`paste.${kind}.example`)} onInput={(event) => setText(event.currentTarget.value)} />
        {problem ? <p class="problem-line" role="alert"><Icon name="warn" /> {problem}</p> : null}
        <footer>
          {kind === "config" ? (
            <>
              <input ref={file} type="file" class="offscreen" tabIndex={-1} aria-hidden="true" accept=".json,.gguf" onChange={(event) => {
                const chosen = event.currentTarget.files?.[0];
                if (chosen) {
                  close();
                  takeFile(chosen);
                }
                event.currentTarget.value = "";
              }} />
              <button type="button" class="button" onClick={() => file.current?.click()}><Icon name="file" /> {t("paste.file")}</button>
            </>
          ) : null}
          <span class="grow" />
          <button type="button" class="button primary" disabled={!text.trim()} onClick={use}>{t("paste.use")}</button>
        </footer>
      </div>
    </dialog>
  );
}

function asFit(): { view?: "fit" } {
  const { view } = current().question;
  return view === "fit" || view === "plan" ? {} : { view: "fit" };
}

let notice: ((text: string, isProblem: boolean) => void) | null = null;

/** Take a file: a config, a GGUF, or a log, told by what it is called and how it begins. */
export function takeFile(file: File): void {
  void taken(file).catch((error: unknown) => {
    const text = error instanceof ApiError ? [error.body.message, error.body.hint].filter(Boolean).join(" · ") : String(error);
    notice?.(`${file.name}: ${text}`, true);
  });
}

async function taken(file: File): Promise<void> {
  const head = new Uint8Array(await file.slice(0, 4).arrayBuffer());
  if (String.fromCharCode(...head) === "GGUF") {
    const found = await sendGguf(file, (sent) => notice?.(`${file.name}: ${bytes(sent)}`, false));
    notice?.("", false);
    ask({ model: found.name, config: "", configName: "", engine: "llama.cpp", version: "", args: "", kv: "", ...asFit() });
    return;
  }
  if (file.size > 33554432) throw new Error(`${bytes(file.size)} > 32 MiB`);
  const text = await file.text();
  const found = readConfig(text);
  if ("config" in found) {
    notice?.("", false);
    ask({ config: found.config, configName: file.name, ...asFit() });
  } else if (/\.json$/i.test(file.name)) {
    notice?.(`${file.name}: ${problemText(found.problem)}`, true);
  } else {
    takeLog(text, file.name);
    ask({ view: "verify" });
  }
}

let problemText: (key: "paste.noJson" | "paste.tooLong") => string = (key) => key;

/** The whole window takes drops and pastes; says what is going on with them. */
export function DropZone() {
  const { t, language } = useText();
  const [over, setOver] = useState(false);
  const [said, setSaid] = useState({ text: "", isProblem: false });
  problemText = (key) => t(key);
  useEffect(() => {
    notice = (text, isProblem) => setSaid({ text, isProblem });
    let depth = 0;
    const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;
    const enter = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      depth += 1;
      setOver(true);
    };
    const leave = () => {
      depth = Math.max(0, depth - 1);
      if (!depth) setOver(false);
    };
    const above = (event: DragEvent) => hasFiles(event) && event.preventDefault();
    const drop = (event: DragEvent) => {
      depth = 0;
      setOver(false);
      const file = event.dataTransfer?.files[0];
      if (!file) return;
      event.preventDefault();
      takeFile(file);
    };
    const paste = (event: ClipboardEvent) => {
      const target = event.target as HTMLElement | null;
      if (target?.closest("input, textarea")) return;
      const text = event.clipboardData?.getData("text") ?? "";
      const found = text.trim().startsWith("{") ? readConfig(text) : null;
      if (found && "config" in found) ask({ config: found.config, configName: "config.json", ...asFit() });
      else if (isCommand(text)) void readCommand(text, current().language).then((change) => ask({ ...change, ...asFit() }), (error: unknown) => notice?.(String((error as Error).message), true));
    };
    const all: [string, (event: never) => void][] = [["dragenter", enter], ["dragleave", leave], ["dragover", above], ["drop", drop], ["paste", paste]];
    for (const [name, listener] of all) window.addEventListener(name, listener as EventListener);
    return () => {
      for (const [name, listener] of all) window.removeEventListener(name, listener as EventListener);
      notice = null;
    };
  }, [language]);
  return (
    <>
      {over ? <div class="drop-over"><p><Icon name="file" /> {t("drop.here")}</p></div> : null}
      <div class={`toast ${said.text ? "shown" : ""} ${said.isProblem ? "bad" : ""}`} role="status">
        {said.text ? <><span>{said.text}</span><button type="button" class="button bare small" aria-label={t("close")} onClick={() => setSaid({ text: "", isProblem: false })}><Icon name="close" /></button></> : null}
      </div>
    </>
  );
}
