/** The layers of a model as a strip: what each keeps, and the groups with their formulas. */
import { bytes, count } from "../format";
import { useText } from "../i18n";
import type { Group, SizeAnswer } from "../types";
import { Formula } from "../ui/formula";
import { Num } from "../ui/num";
import { useWidth } from "../charts/frame";

const SHADES = ["full", "sliding", "chunked", "latent", "index", "compressed", "block_index", "cross", "recurrent", "convolution", "shared", "none"];

/** The card of layers and groups. */
export function Layers({ size }: { size: SizeAnswer }) {
  const { t, w } = useText();
  const [place, width] = useWidth<HTMLDivElement>();
  const { groups, layers = [] } = size.cache;
  const title = (group: Group) => (group.kind === "none" ? w("allocation", group.name) : w("layer", group.kind));
  const kinds = [...new Set(layers.map((layer) => layer.kind))];
  const seen = new Map<number, string[]>();
  for (const layer of layers) seen.set(layer.index, [...(seen.get(layer.index) ?? []), layer.kind]);
  // What lies between the layers of an engine's pages is no layer of the model.
  for (const [index, found] of seen) if (found.length > 1) seen.set(index, found.filter((kind) => kind !== "none"));
  const cells = [...seen].sort(([a], [b]) => a - b);
  const step = width / Math.max(1, cells.length);
  const high = 26;
  return (
    <section class="card" aria-label={t("layers.title")}>
      <header class="card-head"><h2>{t("layers.title")}</h2><span class="card-aside">{t("layers.count", { count: size.model.num_layers })}</span></header>
      {cells.length ? (
        <div ref={place}>
          <svg class="strip" width={width} height={high} viewBox={`0 0 ${width} ${high}`} role="img" aria-label={kinds.map((kind) => `${w("layer", kind)}: ${layers.filter((layer) => layer.kind === kind).length}`).join(", ")}>
            {cells.map(([index, found], at) => (
              <g>
                <title>{`${t("layers.layer", { index })}: ${found.map((kind) => w("layer", kind)).join(" + ")}`}</title>
                {found.map((kind, part) => (
                  <rect x={at * step} width={Math.max(1, step - (step > 4 ? 1.5 : 0.4))} y={(high * part) / found.length} height={high / found.length - (part < found.length - 1 ? 1 : 0)} rx={step > 8 ? 2 : 0} class={`layer layer-${SHADES.indexOf(kind) + 1}`} />
                ))}
              </g>
            ))}
          </svg>
        </div>
      ) : null}
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
}
