/** The layers of a model as a strip: what each keeps, and the groups with their formulas. */
import { bytes, count } from "../format";
import { useText } from "../i18n";
import type { Group, Layer } from "../types";
import { Formula } from "../ui/formula";
import { kept } from "../ui/kept";
import { Num } from "../ui/num";
import { useWidth } from "../charts/frame";

const SHADES = ["full", "sliding", "chunked", "latent", "index", "compressed", "block_index", "cross", "recurrent", "convolution", "shared", "none"];

/** What each layer keeps, as one text: `0 full;1 sliding+index`, in order. */
function patternOf(layers: readonly Layer[]): string {
  const seen = new Map<number, string[]>();
  for (const layer of layers) seen.set(layer.index, [...(seen.get(layer.index) ?? []), layer.kind]);
  // What lies between the layers of an engine's pages is no layer of the model.
  for (const [index, found] of seen) if (found.length > 1) seen.set(index, found.filter((kind) => kind !== "none"));
  return [...seen].sort(([a], [b]) => a - b).map(([index, found]) => `${index} ${found.join("+")}`).join(";");
}

/** The layers as a strip: drawn anew where the pattern is another, not with every load. */
const Strip = kept(function Strip({ pattern }: { pattern: string }) {
  const { t, w } = useText();
  const [place, width] = useWidth<HTMLDivElement>();
  const cells = pattern.split(";").map((cell) => cell.split(" ", 2)).map(([index = "", kinds = ""]) => ({ index, kinds: kinds.split("+") }));
  const step = width / Math.max(1, cells.length);
  const high = 26;
  const counts = new Map<string, number>();
  for (const { kinds } of cells) for (const kind of kinds) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return (
    <div ref={place}>
      <svg class="strip" width={width} height={high} viewBox={`0 0 ${width} ${high}`} role="img" aria-label={[...counts].map(([kind, count]) => `${w("layer", kind)}: ${count}`).join(", ")}>
        {cells.map(({ index, kinds }, at) => (
          <g>
            <title>{`${t("layers.layer", { index })}: ${kinds.map((kind) => w("layer", kind)).join(" + ")}`}</title>
            {kinds.map((kind, part) => (
              <rect x={at * step} width={Math.max(1, step - (step > 4 ? 1.5 : 0.4))} y={(high * part) / kinds.length} height={high / kinds.length - (part < kinds.length - 1 ? 1 : 0)} rx={step > 8 ? 2 : 0} class={`layer layer-${SHADES.indexOf(kind) + 1}`} />
            ))}
          </g>
        ))}
      </svg>
    </div>
  );
});

/** The card of layers and groups. */
export const Layers = kept(function Layers({ layers, groups, numLayers }: { layers: readonly Layer[]; groups: readonly Group[]; numLayers: number }) {
  const { t, w } = useText();
  const title = (group: Group) => (group.kind === "none" ? w("allocation", group.name) : w("layer", group.kind));
  return (
    <section class="card" aria-label={t("layers.title")}>
      <header class="card-head"><h2>{t("layers.title")}</h2><span class="card-aside">{t("layers.count", { count: numLayers })}</span></header>
      {layers.length ? <Strip pattern={patternOf(layers)} /> : null}
      <div class="scroll" tabIndex={0} role="region" aria-label={t("layers.title")}>
        <table>
          <thead><tr><th scope="col">{t("layers.group")}</th><th scope="col" class="right">{t("layers.layers")}</th><th scope="col">{t("layers.formula")}</th><th scope="col" class="right">{t("parts.bytes")}</th></tr></thead>
          <tbody>
            {groups.map((group) => (
              <tr>
                <th scope="row"><span class="with-dot"><i class={`dot layer-${SHADES.indexOf(group.kind) + 1}`} />{title(group)}</span></th>
                <td class="right">{count(group.num_layers)}</td>
                <td><Formula text={group.formula} /></td>
                <td class="right"><Num value={group.bytes} text={bytes(group.bytes)} topic={{ title: title(group), steps: [`group.${group.name}`] }} /></td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
});
