"""``learn pipeline`` as one SVG: text to next token, with cache, tiling and paging where they act.

Regions differ by outline and label as well as by colour; both colour schemes of a reader are served.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

from kvgauge.render.clean import clean

if TYPE_CHECKING:
    from kvgauge.lab.pipeline import PipelineAnswer, Stage
    from kvgauge.render.view import View

WIDTH, BOX_HEIGHT, GAP = 880, 46, 16
LEFT, COLUMN = 60, 420  # the flow
RIGHT, SIDE = 560, 280  # the cache

_STYLE = """
svg { background: #ffffff; font: 14px system-ui, "Noto Sans", "Noto Sans SC", sans-serif; }
text { fill: #1a1d21; }
.small { font-size: 12px; fill: #50565e; }
.title { font-size: 18px; font-weight: 600; }
.box { fill: #f4f5f7; stroke: #8a929c; }
.layer { fill: none; stroke: #50565e; stroke-dasharray: 2 4; }
.flash { fill: #e3edfb; stroke: #2f6fc4; stroke-width: 2; }
.paged { fill: #f0e8fa; stroke: #7b4bb8; stroke-width: 2; }
.page { fill: none; stroke: #7b4bb8; }
.arrow { fill: none; stroke: #50565e; stroke-width: 1.5; marker-end: url(#head); }
.loop { fill: none; stroke: #2b8a57; stroke-width: 2.5; stroke-dasharray: 8 4; marker-end: url(#loop-head); }
.head { fill: #50565e; }
.loop-head { fill: #2b8a57; }
@media (prefers-color-scheme: dark) {
  svg { background: #15181c; }
  text { fill: #e8eaed; }
  .small { fill: #a8b0ba; }
  .box { fill: #22272e; stroke: #6b7480; }
  .layer { stroke: #a8b0ba; }
  .flash { fill: #17304f; stroke: #6aa5f0; }
  .paged { fill: #2d1f42; stroke: #b08be6; }
  .page { stroke: #b08be6; }
  .arrow { stroke: #a8b0ba; }
  .head { fill: #a8b0ba; }
  .loop { stroke: #5cc48d; }
  .loop-head { fill: #5cc48d; }
}
"""


@dataclass
class _Drawing:
    """Elements from top to bottom; ``y`` is where the next box begins."""

    y: int = 70
    elements: list[str] = field(default_factory=list)
    behind: list[str] = field(default_factory=list)

    def box(self, name: str, shape: str, *, x: int = LEFT, width: int = COLUMN, arrow: bool = True) -> int:
        """Draw a box with a name and a shape, an arrow to it, and return where it begins."""
        top = self.y
        if arrow:
            middle = x + width // 2
            self.elements.append(f'<path class="arrow" d="M{middle} {top - GAP} V{top - 2}"/>')
        self.elements.append(
            f'<rect class="box" x="{x}" y="{top}" width="{width}" height="{BOX_HEIGHT}" rx="6"/>'
        )
        self.text(x + 12, top + 19, name)
        self.text(x + 12, top + 37, shape, "small")
        self.y += BOX_HEIGHT + GAP
        return top

    def text(self, x: int, y: int, text: str, style: str = "") -> None:
        """Write one line."""
        mark = f' class="{style}"' if style else ""
        self.elements.append(f'<text x="{x}" y="{y}"{mark}>{escape(text)}</text>')

    def region(self, style: str, top: int, bottom: int, x: int, width: int) -> None:
        """Draw a region behind what stands in it."""
        self.behind.append(
            f'<rect class="{style}" x="{x}" y="{top}" width="{width}" height="{bottom - top}" rx="10"/>'
        )


def draw_pipeline(answer: PipelineAnswer, view: View) -> str:
    """Return the drawing as one SVG document."""
    drawing, texts = _Drawing(), view.texts
    title = texts("pipeline_title", model=clean(answer.model.raw.id), tokens=f"{answer.tokens:,}")
    drawing.text(LEFT, 36, title, "title")
    start = drawing.y
    _entrance(drawing, answer, view)
    top = drawing.y - 4
    drawing.y += 22
    _attention(drawing, answer, view)
    _feed_forward(drawing, answer, view)
    drawing.region("layer", top, drawing.y - 2, LEFT - 22, WIDTH - 56)
    drawing.text(LEFT - 12, top + 16, texts("pipeline_layers", count=answer.num_layers), "small")
    drawing.y += GAP
    end = _exit(drawing, answer, view)
    _loop(drawing, start, end, view)
    return _document(drawing, title, texts("pipeline_about"))


def _sides(stage: Stage) -> str:
    return " × ".join(f"{side:,}" for side in stage.dimensions)


def _shape(answer: PipelineAnswer, code: str, view: View) -> str:
    stage = answer.stages[code]
    return f"{_sides(stage)}: {view.size(stage.size_bytes)}"


def _entrance(drawing: _Drawing, answer: PipelineAnswer, view: View) -> None:
    texts = view.texts
    entries = texts("pipeline_vocabulary", count=f"{answer.vocabulary:,}")
    drawing.box(texts("pipeline_tokens"), entries, arrow=False)
    drawing.box(texts("pipeline_embedding"), _shape(answer, "layer_input", view))


def _attention(drawing: _Drawing, answer: PipelineAnswer, view: View) -> None:
    texts = view.texts
    drawing.box(texts("pipeline_norm"), _shape(answer, "normed_input", view))
    third = (COLUMN - 2 * 12) // 3
    row = drawing.y
    for place, code in enumerate(("query", "key", "value")):
        drawing.y = row
        stage, left = answer.stages[code], LEFT + place * (third + 12)
        name = f"{texts(f'pipeline_{code}')}: {view.size(stage.size_bytes)}"
        drawing.box(name, _sides(stage), x=left, width=third)
    drawing.text(LEFT + COLUMN + 10, row + 28, texts("pipeline_rope"), "small")
    flash = drawing.y + 2
    drawing.y += 26
    into = LEFT + COLUMN // 2
    drawing.elements.append(f'<path class="arrow" d="M{into} {row + BOX_HEIGHT} V{flash - 2}"/>')
    for code in ("scores", "weights", "head_outputs"):
        drawing.box(texts(f"pipeline_{code}"), _shape(answer, code, view), arrow=code != "scores")
    drawing.region("flash", flash, drawing.y - 4, LEFT - 10, COLUMN + 20)
    drawing.text(LEFT, flash + 17, texts("pipeline_flash"), "small")
    _cache(drawing, answer, view, row)
    drawing.y += 6
    drawing.box(texts("pipeline_output"), _shape(answer, "attention_output", view))
    drawing.box(texts("pipeline_add"), _shape(answer, "post_attention", view))


def _cache(drawing: _Drawing, answer: PipelineAnswer, view: View, row: int) -> None:
    """Draw the cache beside the scores that read it: pages, what a layer keeps, what all keep."""
    texts, top = view.texts, row + BOX_HEIGHT + 34
    drawing.region("paged", top, top + 176, RIGHT, SIDE)
    drawing.text(RIGHT + 14, top + 22, texts("pipeline_cache"))
    drawing.text(RIGHT + 14, top + 42, _shape(answer, "cached_keys", view), "small")
    drawing.text(RIGHT + 14, top + 60, _shape(answer, "cached_values", view), "small")
    for place in range(8):
        x, y = RIGHT + 14 + (place % 4) * 62, top + 72 + (place // 4) * 22
        drawing.elements.append(f'<rect class="page" x="{x}" y="{y}" width="56" height="17" rx="3"/>')
    pages = texts("pipeline_pages", count=f"{answer.num_pages:,}", size=view.size(answer.page_bytes))
    drawing.text(RIGHT + 14, top + 134, pages, "small")
    layer, whole = view.size(answer.layer_cache_bytes), view.size(answer.cache_bytes)
    drawing.text(RIGHT + 14, top + 154, texts("pipeline_sums", layer=layer, all=whole), "small")
    drawing.elements.append(
        f'<path class="arrow" d="M{LEFT + COLUMN} {row + BOX_HEIGHT - 8} H{RIGHT + SIDE // 2} V{top - 2}"/>'
    )
    drawing.elements.append(f'<path class="arrow" d="M{RIGHT} {top + 60} H{LEFT + COLUMN + 12}"/>')
    drawing.text(RIGHT - 58, top + 52, texts("pipeline_read"), "small")


def _feed_forward(drawing: _Drawing, answer: PipelineAnswer, view: View) -> None:
    texts = view.texts
    drawing.box(texts("pipeline_norm"), _shape(answer, "normed_post_attention", view))
    if "gate" in answer.stages:
        half, row = (COLUMN - 12) // 2, drawing.y
        for place, code in enumerate(("gate", "up")):
            drawing.y = row
            left = LEFT + place * (half + 12)
            drawing.box(texts(f"pipeline_{code}"), _shape(answer, code, view), x=left, width=half)
    else:
        drawing.box(texts("pipeline_up"), _shape(answer, "up", view))
    for code in ("middle", "down"):
        drawing.box(texts(f"pipeline_{code}"), _shape(answer, code, view))
    drawing.box(texts("pipeline_add"), _shape(answer, "layer_output", view))


def _exit(drawing: _Drawing, answer: PipelineAnswer, view: View) -> int:
    """Draw the way out and return where the last box stands."""
    texts = view.texts
    drawing.box(texts("pipeline_norm"), _shape(answer, "layer_output", view))
    drawing.box(texts("pipeline_head"), _shape(answer, "logits", view))
    return drawing.box(texts("pipeline_next"), texts("pipeline_next_how"))


def _loop(drawing: _Drawing, start: int, end: int, view: View) -> None:
    middle, edge = BOX_HEIGHT // 2, WIDTH - 12
    side = LEFT + COLUMN
    way = f"M{side} {end + middle} H{edge} V{start + middle} H{side + 4}"
    drawing.elements.append(f'<path class="loop" d="{way}"/>')
    drawing.text(side + 16, start + middle - 8, view.texts("pipeline_loop"), "small")


def _document(drawing: _Drawing, title: str, about: str) -> str:
    height = drawing.y + 8
    heads = "".join(
        f'<marker id="{name}" markerUnits="userSpaceOnUse" markerWidth="11" markerHeight="9" refX="9" '
        f'refY="4.5" orient="auto">'
        f'<path class="{name}" d="M0 0 L11 4.5 L0 9 z"/></marker>'
        for name in ("head", "loop-head")
    )
    body = "\n".join((*drawing.behind, *drawing.elements))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" role="img" aria-labelledby="t d">\n'
        f'<title id="t">{escape(title)}</title>\n<desc id="d">{escape(about)}</desc>\n'
        f"<style>{_STYLE}</style>\n<defs>{heads}</defs>\n{body}\n</svg>\n"
    )
