/** What every chart has: a heading, the drawing, a table of the same figures, and saving as SVG and PNG. */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { useText } from "../i18n";
import { saveFile } from "../ui/copy";
import { Icon } from "../ui/icons";

/** The width of an element in CSS pixels, as it changes. */
export function useWidth<E extends Element>(): [{ current: E | null }, number] {
  const place = useRef<E>(null);
  const [width, setWidth] = useState(640);
  useLayoutEffect(() => {
    if (!place.current) return;
    const take = (wide: number) => setWidth(Math.max(240, Math.round(wide)));
    take(place.current.getBoundingClientRect().width);
    const watch = new ResizeObserver(([entry]) => entry && take(entry.contentRect.width));
    watch.observe(place.current);
    return () => watch.disconnect();
  }, []);
  return [place, width];
}

/** How much larger than 16 pixels the page's type is: drawings with text in them grow by it. */
export function typeScale(): number {
  return parseFloat(getComputedStyle(document.documentElement).fontSize) / 16 || 1;
}

const COPIED = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "opacity", "font-size", "font-weight", "font-family", "text-anchor"];

/** A drawing that stands alone: computed styles written into it, a background, its own namespace. */
function standalone(drawing: SVGSVGElement): string {
  const copy = drawing.cloneNode(true) as SVGSVGElement;
  const sources = drawing.querySelectorAll("*");
  copy.querySelectorAll("*").forEach((element, at) => {
    const source = sources[at];
    if (!source) return;
    const style = getComputedStyle(source);
    for (const name of COPIED) {
      const value = style.getPropertyValue(name);
      if (value && !(name === "fill" && source.getAttribute("fill")?.startsWith("url("))) element.setAttribute(name, value);
    }
    element.removeAttribute("class");
    if (element instanceof HTMLElement) element.remove();
  });
  copy.querySelectorAll("[data-screen]").forEach((element) => element.remove());
  const { width, height } = drawing.getBoundingClientRect();
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", String(Math.round(width)));
  copy.setAttribute("height", String(Math.round(height)));
  const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  ground.setAttribute("width", "100%");
  ground.setAttribute("height", "100%");
  ground.setAttribute("fill", getComputedStyle(drawing.closest(".card") ?? document.body).backgroundColor);
  copy.insertBefore(ground, copy.firstChild);
  return new XMLSerializer().serializeToString(copy);
}

function saveSvg(drawing: SVGSVGElement, name: string): void {
  saveFile(`${name}.svg`, new Blob([standalone(drawing)], { type: "image/svg+xml" }));
}

async function savePng(drawing: SVGSVGElement, name: string): Promise<void> {
  const { width, height } = drawing.getBoundingClientRect();
  const address = URL.createObjectURL(new Blob([standalone(drawing)], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = Math.round(width * 2);
    canvas.height = Math.round(height * 2);
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => blob && saveFile(`${name}.png`, blob), "image/png");
  } finally {
    URL.revokeObjectURL(address);
  }
}

export interface Table {
  head: string[];
  rows: (string | number)[][];
}

interface Props {
  title: string;
  name: string;
  children: ComponentChildren;
  /** The same figures as a table, made when it is opened. */
  table?: () => Table;
  aside?: ComponentChildren;
  lead?: ComponentChildren;
  /** Across both columns of a wide screen. */
  wide?: boolean;
}

/** A card with a chart. The first `svg.chart` in it is what is saved. */
export function ChartCard({ title, name, children, table, aside, lead, wide = false }: Props) {
  const { t } = useText();
  const place = useRef<HTMLElement>(null);
  const drawing = () => place.current?.querySelector<SVGSVGElement>("svg.chart") ?? null;
  const withDrawing = (use: (svg: SVGSVGElement) => unknown) => () => {
    const svg = drawing();
    if (svg) void use(svg);
  };
  return (
    <section class={`card chart-card ${wide ? "wide" : ""}`} ref={place} aria-label={title}>
      <header class="card-head">
        <h2>{title}</h2>
        {aside}
        <span class="tools" role="group" aria-label={t("chart.save", { title })}>
          <button type="button" class="button small bare" aria-label={t("chart.save.svg", { title })} onClick={withDrawing((svg) => saveSvg(svg, name))}><Icon name="image" /><span>SVG</span></button>
          <button type="button" class="button small bare" aria-label={t("chart.save.png", { title })} onClick={withDrawing((svg) => savePng(svg, name))}><span>PNG</span></button>
        </span>
      </header>
      {lead}
      {children}
      {table ? <TableTwin title={title} table={table} /> : null}
    </section>
  );
}

/** The figures of a chart as a table, closed until wanted. */
export function TableTwin({ title, table }: { title: string; table: () => Table }) {
  const { t } = useText();
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="twin" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{t("chart.table")}</summary>
      {isOpen ? <Figures title={title} {...table()} /> : null}
    </details>
  );
}

function Figures({ title, head, rows }: { title: string } & Table) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={title}>
      <table>
        <thead><tr>{head.map((cell, at) => <th scope="col" class={at ? "right" : ""}>{cell}</th>)}</tr></thead>
        <tbody>
          {rows.map((row) => (
            <tr>{row.map((cell, at) => (at ? <td class="right">{cell}</td> : <th scope="row">{cell}</th>))}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
