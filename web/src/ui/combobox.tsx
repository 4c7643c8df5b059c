/** A text field that offers completions (the combobox of the ARIA practices). */
import { useEffect, useId, useRef, useState } from "preact/hooks";

export interface Offer {
  value: string;
  label?: string;
  detail?: string;
}

interface Props {
  label: string;
  value: string;
  placeholder?: string;
  find: (text: string, signal: AbortSignal) => Promise<Offer[]>;
  onChoose: (value: string) => void;
  hideLabel?: boolean;
  nothing: string;
}

/** A combobox; `onChoose` hears a chosen offer, or the text on Enter and on leaving. */
export function Combobox({ label, value, placeholder, find, onChoose, hideLabel = false, nothing }: Props) {
  const id = useId();
  const [draft, setDraft] = useState<string | null>(null);
  const [offers, setOffers] = useState<Offer[]>([]);
  const [open, setOpen] = useState(false);
  const [active, setActive] = useState(-1);
  const list = useRef<HTMLUListElement>(null);
  const text = draft ?? value;

  useEffect(() => {
    if (!open) return;
    const stop = new AbortController();
    const timer = setTimeout(() => {
      find(draft ?? "", stop.signal)
        .then((found) => {
          setOffers(found);
          setActive(-1);
        })
        .catch(() => undefined);
    }, 60);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [draft, open]);
  useEffect(() => {
    if (active >= 0) list.current?.children[active]?.scrollIntoView({ block: "nearest" });
  }, [active]);

  const choose = (chosen: string) => {
    setDraft(null);
    setOpen(false);
    if (chosen.trim() && chosen !== value) onChoose(chosen.trim());
  };
  const key = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (!open) setOpen(true);
      else if (offers.length) setActive((active + (event.key === "ArrowDown" ? 1 : active < 0 ? 0 : -1) + offers.length) % offers.length);
    } else if (event.key === "Enter") {
      event.preventDefault();
      choose(offers[active]?.value ?? text);
    } else if (event.key === "Escape" && open) {
      event.stopPropagation();
      setDraft(null);
      setOpen(false);
    }
  };
  return (
    <div class="field combo">
      <label for={id} class={hideLabel ? "offscreen" : ""}>{label}</label>
      <input id={id} class="text" role="combobox" aria-expanded={open} aria-controls={`${id}l`} aria-autocomplete="list"
        aria-activedescendant={active >= 0 ? `${id}o${active}` : undefined}
        autocomplete="off" autocapitalize="off" spellcheck={false} value={text} placeholder={placeholder}
        onInput={(event) => {
          setDraft(event.currentTarget.value);
          setOpen(true);
        }}
        onFocus={(event) => event.currentTarget.select()} onClick={() => setOpen(true)} onKeyDown={key}
        onBlur={() => choose(text)} />
      <ul id={`${id}l`} ref={list} role="listbox" aria-label={label} class="offers" hidden={!open}>
        {offers.map((offer, at) => (
          <li key={offer.value} id={`${id}o${at}`} role="option" aria-selected={at === active} class={at === active ? "active" : ""}
            onPointerDown={(event) => {
              event.preventDefault();
              choose(offer.value);
            }}>
            <span>{offer.label ?? offer.value}</span>
            {offer.detail ? <small>{offer.detail}</small> : null}
          </li>
        ))}
        {open && offers.length === 0 ? <li class="none" role="option" aria-selected={false} aria-disabled="true">{nothing}</li> : null}
      </ul>
    </div>
  );
}
