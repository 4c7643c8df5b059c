"""``learn walk`` as text: small tables, short sentences, this run's numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kvgauge.render.clean import clean
from kvgauge.render.view import View, plain, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from kvgauge.lab.peeks import Vector
    from kvgauge.lab.walk import WalkAnswer
    from kvgauge.render.view import Grid

#: Rows of a table of tokens; of longer texts the last ones.
MAX_ROWS = 10
#: Columns of a table of shares.
MAX_COLUMNS = 8


def draw_walk(answer: WalkAnswer, view: View) -> str:
    """Return the walk: six steps, the layers, the generation with its cache."""
    from kvgauge.render.learn_walk_cache import generation  # noqa: PLC0415 - drawn behind the steps

    config = answer.folder.config
    title = view.texts(
        "walk_title", text=shown(answer.text), model=clean(answer.name), layers=config.num_layers
    )
    sections = (_tokens, _projections, _attention, _feed_forward, _next, _depths, generation)
    parts: list[RenderableType] = [plain(title, "bold")]
    for section in sections:
        parts += [plain(""), *section(answer, view)]
    return view.draw(*parts)


def shown(text: str) -> str:
    """Return a token's or a prompt's text on one line: an end of line is a sign, nothing is invisible.

    >>> shown("好" + chr(10)), shown(" is")
    ('好⏎', '␣is')
    """
    return clean(text.replace("\n", "⏎").replace(" ", "␣"))


def numbers(vector: Vector, view: View) -> str:
    """Return the beginning of a vector: fewer numbers where columns must be saved."""
    return row(vector.first[: 2 if view.is_narrow else None]) + (
        " …" if vector.width > len(vector.first) else ""
    )


def row(values: Sequence[float]) -> str:
    """Return numbers with a sign each.

    >>> row([0.25, -1.5])
    '+0.250 -1.500'
    """
    return " ".join(f"{value:+.3f}" for value in values)


def percent(share: float) -> str:
    """Return a share in percent.

    >>> percent(0.4589), percent(0.00001)
    ('45.9 %', '0.0 %')
    """
    return f"{100 * share:.1f} %"


def grid(view: View, *keys: str, right: tuple[int, ...] = ()) -> Grid:
    """Return a table whose columns are named by keys of texts."""
    return table(*(view.texts(key) for key in keys), right=right)


def _tokens(answer: WalkAnswer, view: View) -> list[RenderableType]:
    """Steps 1 and 2."""
    texts, tokens = view.texts, answer.tokens
    rows = grid(view, "column_position", "column_token", "column_token_id", "column_row", right=(0, 2))
    for token in tokens[-MAX_ROWS:]:
        rows.add_texts(str(token.position), shown(token.text), str(token.id), numbers(token.row, view))
    count, width = answer.embedding
    parts: list[RenderableType] = [
        plain(texts("walk_step_1"), "bold"),
        plain(texts("walk_ids", count=len(tokens), vocabulary=f"{count:,}")),
        plain(texts("walk_one_character")) if answer.is_shipped else plain(texts("walk_pieces")),
        plain(""),
        plain(texts("walk_step_2"), "bold"),
        plain(texts("walk_rows", rows=f"{count:,}", columns=f"{width:,}")),
        rows,
    ]
    if len(tokens) > MAX_ROWS:
        parts.append(plain(texts("walk_cut", shown=MAX_ROWS, count=len(tokens))))
    return parts


def _projections(answer: WalkAnswer, view: View) -> list[RenderableType]:
    """Step 3."""
    texts, config, made = view.texts, answer.folder.config, answer.projections
    matrices = grid(view, "column_matrix", "column_shape", "column_numbers_in", "column_begins", right=(2,))
    for name, one in zip("QKV", made.matrices, strict=True):
        size = f"{one.rows:,} × {one.columns:,}"
        matrices.add_texts(f"W_{name}", size, f"{one.num_elements:,}", row(one.corner[0][:3]) + " …")
    vectors = grid(view, "column_vector", "column_heads", "column_head_0")
    heads = (config.query_heads, config.kv_heads, config.kv_heads)
    for name, count, made_of in zip("QKV", heads, (made.query, made.key, made.value), strict=True):
        vectors.add_texts(name, f"{count} × {made_of.width}", numbers(made_of, view))
    last = shown(answer.tokens[-1].text)
    parts: list[RenderableType] = [
        plain(texts("walk_step_3"), "bold"),
        plain(texts("walk_roles")),
        plain(texts("walk_matrices")),
        matrices,
        plain(texts("walk_vectors", token=last)),
        vectors,
        plain(texts("walk_turned" if not config.has_query_norm else "walk_turned_normed")),
    ]
    if config.query_heads != config.kv_heads:
        group = config.query_heads // config.kv_heads
        parts.append(plain(texts("walk_groups", group=group, kv_heads=config.kv_heads)))
    if made.again is not None and made.key_change is not None and made.value_change is not None:
        values = {"moved": f"{made.key_change:.3g}", "stayed": f"{made.value_change:.3g}"}
        token = shown(answer.tokens[made.again].text)
        parts.append(
            plain(texts("walk_same", token=token, first=made.first_seen, again=made.again, **values))
        )
    return parts


def _attention(answer: WalkAnswer, view: View) -> list[RenderableType]:
    """Step 4."""
    texts, seen, tokens = view.texts, answer.attention, answer.tokens
    keys = ("column_token", "column_product", "column_score", "column_share", "column_value_begins")
    looks = grid(view, *keys, right=(1, 2, 3))
    for look in seen.looks[-MAX_ROWS:]:
        score = (f"{look.product:+.2f}", f"{look.score:+.2f}", percent(look.share))
        looks.add_texts(shown(tokens[look.position].text), *score, numbers(look.value, view))
    looks.add_texts(
        texts("walk_sum"), "", "", percent(sum(seen.by_head[seen.head])), numbers(seen.taken, view)
    )
    parts: list[RenderableType] = [
        plain(texts("walk_step_4"), "bold"),
        plain(texts("walk_scores", token=shown(tokens[-1].text), divisor=f"{seen.divisor:.4g}")),
        looks,
        plain(texts("walk_heads", token=shown(tokens[-1].text))),
        _shares(answer, view, texts("column_head"), seen.by_head),
    ]
    if 1 < len(seen.by_token) <= MAX_COLUMNS:
        names = [shown(token.text) for token in tokens]
        parts += [
            plain(texts("walk_mask")),
            _shares(answer, view, texts("column_token"), seen.by_token, names),
        ]
    return parts


def _shares(
    answer: WalkAnswer,
    view: View,
    title: str,
    shares: Sequence[Sequence[float]],
    names: Sequence[str] = (),
) -> RenderableType:
    """Return a table of shares: what each row takes from each token."""
    columns = [shown(token.text) for token in answer.tokens][-(4 if view.is_narrow else MAX_COLUMNS) :]
    result = table(title, *columns, right=tuple(range(1, 1 + len(columns))))
    for number, line in enumerate(shares[:MAX_COLUMNS]):
        cells = [percent(share) if share else "-" for share in line[-len(columns) :]]
        result.add_texts(names[number] if names else str(number), *cells)
    return result


def _feed_forward(answer: WalkAnswer, view: View) -> list[RenderableType]:
    """Step 5."""
    stages = grid(view, "column_stage", "column_width", "column_begins", right=(1,))
    for name, one in answer.digestion:
        stages.add_texts(view.texts(f"life.{name}"), f"{one.width:,}", numbers(one, view))
    return [plain(view.texts("walk_step_5"), "bold"), plain(view.texts("walk_feed_forward")), stages]


def _next(answer: WalkAnswer, view: View) -> list[RenderableType]:
    """Step 6."""
    texts = view.texts
    best = grid(view, "column_token", "column_logit", "column_share", right=(1, 2))
    for one in answer.candidates:
        best.add_texts(shown(one.text), f"{one.logit:+.2f}", percent(one.share))
    count, width = answer.embedding
    tied = "walk_head_tied" if answer.folder.config.is_tied else "walk_head"
    return [
        plain(texts("walk_step_6"), "bold"),
        plain(texts(tied, rows=f"{count:,}", columns=f"{width:,}", token=shown(answer.tokens[-1].text))),
        best,
    ]


def _depths(answer: WalkAnswer, view: View) -> list[RenderableType]:
    """One token through the layers: its key in each, its output, what would be guessed."""
    texts = view.texts
    token = shown(answer.tokens[-1].text)
    keys = ("column_layer", "column_key_begins", "column_output_begins", "column_likeness", "column_guess")
    layers = grid(view, *keys, right=(0, 3))
    for depth in answer.depths:
        guess = f"{shown(depth.guess.text)} {percent(depth.guess.share)}"
        cells = (row(depth.key.first[:2]), row(depth.output.first[:2]), f"{depth.likeness:+.2f}", guess)
        layers.add_texts(str(depth.layer), *cells)
    return [
        plain(texts("walk_layers", token=token), "bold"),
        plain(texts("walk_layers_key")),
        layers,
        plain(texts("walk_layers_output")),
    ]
