"""Train the small model that ships with the lab, from ``lab_text.tsv``, and write it into the package.

    pip install torch==2.13.0 transformers==5.24.0 -e '.[lab]'
    python tools/lab_model.py train
    python tools/lab_model.py check

The text was written for it: a line is how often a sentence is seen, and the sentence. One character is one
token. The run is seeded and takes one thread; ``check`` needs no torch and holds what ships against what it
is to say.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEXT = ROOT / "tools/lab_text.tsv"
FOLDER = ROOT / "src/kvgauge/data/lab_model"

SEED, STEPS, RATE = 20_260_4, 700, 3e-3
END, UNKNOWN = "\n", "<unk>"
SHAPE = {
    "model_type": "qwen3",
    "architectures": ["Qwen3ForCausalLM"],
    "num_hidden_layers": 4,
    "hidden_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "intermediate_size": 112,
    "max_position_embeddings": 256,
    "rope_theta": 10000.0,
    "rms_norm_eps": 1e-06,
    "hidden_act": "silu",
    "tie_word_embeddings": True,
    "torch_dtype": "float32",
}
#: What it is to say, greedily.
EXPECTED = {"今天天气": "真好！", "The weather today": " is lovely!"}


def sentences() -> list[tuple[int, str]]:
    """Return how often each sentence is seen, and the sentence."""
    rows = [line.split("\t") for line in TEXT.read_text(encoding="utf-8").splitlines()]
    return [(int(count), text) for count, text in rows]


def vocabulary() -> dict[str, int]:
    """Return the id of each character: the unknown one, the end, then by code point."""
    characters = sorted({character for _, text in sentences() for character in text})
    return {word: number for number, word in enumerate([UNKNOWN, END, *characters])}


def write_tokenizer(words: dict[str, int]) -> None:
    """Write ``tokenizer.json``: every character by itself."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers  # noqa: PLC0415

    tokenizer = Tokenizer(models.WordLevel(words, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    tokenizer.save(str(FOLDER / "tokenizer.json"), pretty=False)


def train() -> None:
    """Train the model and write its folder."""
    import torch  # noqa: PLC0415
    from transformers import Qwen3Config, Qwen3ForCausalLM  # noqa: PLC0415

    from kvgauge.lab.folder import save_folder  # noqa: PLC0415

    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    words = vocabulary()
    config = {**SHAPE, "vocab_size": len(words), "eos_token_id": words[END], "bos_token_id": None}
    model = Qwen3ForCausalLM(Qwen3Config(**{k: v for k, v in config.items() if k != "model_type"}))
    rows = [[words[c] for c in text + END] for _, text in sentences()]
    longest = max(map(len, rows))
    ids = torch.tensor([row + [words[END]] * (longest - len(row)) for row in rows])
    targets = torch.tensor([row + [-100] * (longest - len(row)) for row in rows])
    seen = torch.tensor([float(count) for count, _ in sentences()])
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    for step in range(STEPS):
        logits = model(ids).logits[:, :-1]
        losses = torch.nn.functional.cross_entropy(
            logits.transpose(1, 2), targets[:, 1:], ignore_index=-100, reduction="none"
        )
        loss = (losses.sum(1) * seen).sum() / ((targets[:, 1:] >= 0).sum(1) * seen).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 100 == 0 or step == STEPS - 1:
            print(f"step {step}: {loss.item():.4f}")
    tensors = {name: value.detach().numpy() for name, value in model.state_dict().items()}
    tensors.pop("lm_head.weight")
    save_folder(FOLDER, config, tensors)
    write_tokenizer(words)
    check()


def check() -> None:
    """Hold the model that ships against what it is to say, and against the size it may have."""
    from kvgauge.lab.folder import open_folder  # noqa: PLC0415
    from kvgauge.lab.generate import complete  # noqa: PLC0415

    size = sum(file.stat().st_size for file in FOLDER.iterdir())
    folder = open_folder(FOLDER)
    for prompt, expected in EXPECTED.items():
        said = complete(folder, prompt, 40).removesuffix(END)
        print(json.dumps([prompt, said], ensure_ascii=False))
        if said != expected:
            sys.exit(f"expected {expected!r}")
    print(f"{size} bytes")
    if size >= 1_000_000:
        sys.exit("too large to ship")


if __name__ == "__main__":
    {"train": train, "check": check}[sys.argv[1] if len(sys.argv) == 2 else "check"]()
