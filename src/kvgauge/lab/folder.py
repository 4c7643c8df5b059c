"""A model in a folder, ready to run: ``config.json``, safetensors of one file or many, ``tokenizer.json``."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kvgauge.errors import (
    DamagedFileError,
    FeatureUnsupportedError,
    InvalidFieldError,
    InvalidRequestError,
    KvgaugeError,
    ModelNotFoundError,
)
from kvgauge.lab.arrays import Floats
from kvgauge.lab.decoder import Decoder, LayerWeights, Linear
from kvgauge.lab.decoder_config import DecoderConfig, read_config
from kvgauge.models import Model, load
from kvgauge.sources.gguf_local import LocalFile
from kvgauge.sources.local import read_path
from kvgauge.sources.safetensors import TensorInfo, read_header
from kvgauge.sources.weight_files import LocalWeights

if TYPE_CHECKING:
    from tokenizers import Tokenizer


TOKENIZER_FILE = "tokenizer.json"
MAX_TOKENIZER_BYTES = 64 << 20
#: Dtype words of the format that become fp32 as they are, with NumPy's name; bf16 is the upper half of fp32.
_PLAIN = {"F32": "<f4", "F16": "<f2", "F64": "<f8"}
_FOLDER_HINT = "give a folder that holds config.json and *.safetensors"


class Place(NamedTuple):
    """Where a tensor's data lies."""

    file: Path
    offset: int
    info: TensorInfo


class Tensors:
    """The tensors of a folder; data are read when one is asked for, as fp32."""

    def __init__(self, places: Mapping[str, Place]) -> None:
        self._places = places

    def __contains__(self, name: str) -> bool:
        return name in self._places

    @property
    def num_elements(self) -> int:
        """Numbers in all of them."""
        return sum(place.info.num_elements for place in self._places.values())

    def read(self, name: str, *shape: int) -> Floats:
        """Return a tensor as fp32.

        Raises:
            DamagedFileError: it is not there. InvalidFieldError: it has another shape than the config says.
            FeatureUnsupportedError: its dtype is no plain floating point of 16 bit or more.
        """
        place = self._places.get(name)
        if place is None:
            raise DamagedFileError(f"the weights lack {name}", hint="fetch the folder again", field=name)
        info = place.info
        if info.shape != shape:
            said, asked = (" x ".join(map(str, dims)) for dims in (info.shape, shape))
            raise InvalidFieldError(
                f"{name} is {said}, the config makes it {asked}",
                hint="config.json and weights are of two models",
                field=name,
            )
        return _widened(place)


def _widened(place: Place) -> Floats:
    word, shape = place.info.dtype, place.info.shape
    stored = "<u2" if word == "BF16" else _PLAIN.get(word)
    if stored is None:
        raise FeatureUnsupportedError(
            f"{place.info.name} is stored as {word}, which is not run here",
            hint="give a folder of weights in 16 or 32 bit",
            field=place.info.name,
        )
    if not prod(shape):
        return np.zeros(shape, np.float32)
    data = np.memmap(place.file, stored, "r", place.offset, shape)
    if word != "BF16":
        return np.array(data, dtype=np.float32)
    wide = data.astype(np.uint32)
    np.left_shift(wide, 16, out=wide)
    return wide.view(np.float32)


def open_tensors(folder: Path) -> Tensors:
    """Return the tensors of a folder, one file or many.

    Raises:
        KvgaugeError: there are none, a file is missing or damaged.
    """
    found = LocalWeights(folder).read()
    if found is None:
        raise ModelNotFoundError(f"{folder} holds no safetensors", hint=_FOLDER_HINT, field="model")
    if found.checkpoint is None:
        why = found.failure or f"weight files are missing: {', '.join(found.missing[:3])}"
        raise DamagedFileError(why, hint="fetch the folder again", field="model")
    places = {}
    for name in found.files:
        file = LocalFile(folder / name)
        start = 8 + int.from_bytes(file.read(0, 8), "little")
        for info in read_header(file, name).tensors:
            places[info.name] = Place(folder / name, start + info.begin, info)
    return Tensors(places)


@dataclass(frozen=True)
class Folder:
    """A model in a folder.

    Args:
        model: what the sizes are computed from.
    """

    path: Path
    model: Model
    config: DecoderConfig

    @cached_property
    def decoder(self) -> Decoder:
        """The decoder, its weights in memory.

        Raises:
            KvgaugeError: weights are missing, damaged, of another shape, or more than the memory.
        """
        tensors = open_tensors(self.path)
        _check_memory(4 * tensors.num_elements)
        return _decoder(self.config, tensors)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer.

        Raises:
            ModelNotFoundError: there is none. DamagedFileError: it can't be read.
        """
        from tokenizers import Tokenizer  # noqa: PLC0415 - ids can do without

        file = self.path / TOKENIZER_FILE
        if not file.is_file():
            raise ModelNotFoundError(
                f"{self.path} holds no {TOKENIZER_FILE}", hint="give ids: --ids 1,2,3", field="model"
            )
        if file.stat().st_size > MAX_TOKENIZER_BYTES:
            raise DamagedFileError(f"{file} is too large for a tokenizer", field="model")
        with _tokenizing(f"{file} is no tokenizer"):
            return Tokenizer.from_file(str(file))

    @property
    def has_tokenizer(self) -> bool:
        """Whether the folder has one."""
        return (self.path / TOKENIZER_FILE).is_file()

    def encode(self, text: str) -> tuple[int, ...]:
        """Return the ids of a text.

        Raises:
            InvalidRequestError: there are none, or the model has no such id.
        """
        tokenizer = self.tokenizer
        with _tokenizing("the tokenizer can't read this text"):
            return self.checked(tuple(tokenizer.encode(text).ids))

    def checked(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        """Return ids that the model has.

        Raises:
            InvalidRequestError: there is none, or one is beyond the vocabulary.
        """
        if not ids:
            raise InvalidRequestError("the text is empty", hint="give at least one character", field="text")
        bad = next((one for one in ids if not 0 <= one < self.config.vocabulary), None)
        if bad is not None:
            raise InvalidRequestError(
                f"the model has no id {bad}", hint=f"0 to {self.config.vocabulary - 1}", field="ids"
            )
        return ids

    def word(self, token: int) -> str:
        """Return the text of one id; the id itself where there is no tokenizer."""
        return self.text([token])

    def text(self, ids: Sequence[int]) -> str:
        """Return the text of ids; a character may be spread over several of them."""
        if not self.has_tokenizer:
            return "".join(f"#{token}" for token in ids)
        tokenizer = self.tokenizer
        with _tokenizing("the tokenizer can't write these ids"):
            return str(tokenizer.decode(list(ids), skip_special_tokens=False))


@contextmanager
def _tokenizing(what: str) -> Iterator[None]:
    """Turn whatever the tokenizer's library raises into one line; a panic of its is no ``Exception``.

    Raises:
        DamagedFileError: it raised something.
    """
    try:
        yield
    except (KvgaugeError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        raise DamagedFileError(what, hint="fetch the folder again", field="model") from error


def open_folder(path: str | Path) -> Folder:
    """Return the model of a folder.

    Raises:
        KvgaugeError: no folder, no config, or an architecture that is not run here.
    """
    folder = Path(path).expanduser()
    if not folder.is_dir():
        raise ModelNotFoundError(f"{folder} is no folder", hint=_FOLDER_HINT, field="model")
    raw = read_path(folder)
    if raw.source != "file":
        raise FeatureUnsupportedError("the decoder here runs no GGUF", hint=_FOLDER_HINT, field="model")
    config = read_config(raw.config)
    return Folder(folder, load(folder), config)


def _check_memory(needed_bytes: int) -> None:
    """Refuse weights that this machine has no memory for."""
    try:
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows
        return
    if needed_bytes > there:
        raise FeatureUnsupportedError(
            f"the weights take {needed_bytes >> 20} MiB as fp32, the machine has {there >> 20}",
            hint="give a smaller model",
            field="model",
        )


def _decoder(config: DecoderConfig, tensors: Tensors) -> Decoder:
    embedding = tensors.read("model.embed_tokens.weight", config.vocabulary, config.hidden)
    head = embedding
    if not config.is_tied:
        head = tensors.read("lm_head.weight", config.vocabulary, config.hidden)
    return Decoder(
        config,
        embedding,
        tuple(_layer(config, tensors, number) for number in range(config.num_layers)),
        tensors.read("model.norm.weight", config.hidden),
        head,
    )


def _layer(config: DecoderConfig, tensors: Tensors, number: int) -> LayerWeights:
    prefix = f"model.layers.{number}."
    hidden, inner = config.hidden, config.intermediate
    queries, kept = config.query_heads * config.head_width, config.kv_heads * config.head_width

    def linear(name: str, outputs: int, inputs: int) -> Linear:
        has_bias = config.has_attention_bias if name.startswith("self_attn") else config.has_ffn_bias
        return Linear(
            tensors.read(f"{prefix}{name}.weight", outputs, inputs),
            tensors.read(f"{prefix}{name}.bias", outputs) if has_bias else None,
        )

    def norm(name: str, width: int) -> Floats:
        return tensors.read(f"{prefix}{name}.weight", width)

    return LayerWeights(
        input_norm=norm("input_layernorm", hidden),
        query=linear("self_attn.q_proj", queries, hidden),
        key=linear("self_attn.k_proj", kept, hidden),
        value=linear("self_attn.v_proj", kept, hidden),
        output=linear("self_attn.o_proj", hidden, queries),
        post_attention_norm=norm("post_attention_layernorm", hidden),
        gate=linear("mlp.gate_proj", inner, hidden),
        up=linear("mlp.up_proj", inner, hidden),
        down=linear("mlp.down_proj", hidden, inner),
        query_norm=norm("self_attn.q_norm", config.head_width) if config.has_query_norm else None,
        key_norm=norm("self_attn.k_norm", config.head_width) if config.has_query_norm else None,
    )


def save_folder(path: Path, config: Mapping[str, object], tensors: Mapping[str, Floats]) -> None:
    """Write a model that ``open_folder`` reads: ``config.json`` and one file of weights, as they are."""
    from safetensors.numpy import save  # noqa: PLC0415 - reading needs none of it

    path.mkdir(parents=True, exist_ok=True)
    (path / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
    (path / "model.safetensors").write_bytes(save(dict(tensors)))
