"""What memory breakdowns and start-up logs of llama.cpp print of caches, buffers and weights, by place.

``golden/llamacpp_breakdowns.jsonl``: figures in MiB with how near they are met: ``cut``, the breakdown cuts
fractions off; a share; ``range``, the input that decides it is not stated, so that it lies in the range.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

import kvgauge
from kvgauge.engines.llamacpp import settings_of
from kvgauge.engines.tensor_overrides import parse_overrides
from kvgauge.errors import InvalidRequestError, KvgaugeError

ROWS = [
    json.loads(line)
    for line in (Path(__file__).parent / "golden" / "llamacpp_breakdowns.jsonl").read_text().splitlines()
]
MIB = 1 << 20
MOE = "Qwen/Qwen3-30B-A3B"


def places(model, args, *, engine="llama.cpp", weights=None, **load):
    """Return place -> term -> (MiB, low, high)."""
    answer = kvgauge.size(model, engine=engine, engine_args=args, weights=weights, **load).to_dict()
    found: dict[str, dict[str, tuple[float, ...]]] = {}
    for each in answer["engine"]["allocations"]:
        term = "mtp" if each["name"].startswith("mtp.kv") else each["name"]
        if term not in ("mtp", "mtp.compute", "output"):
            term = "context" if each["kind"] in ("cache", "state") else each["kind"]
        sizes = tuple(each[name] / MIB for name in ("bytes", "low_bytes", "high_bytes"))
        before = found.setdefault(each["place"], {}).get(term, (0.0, 0.0, 0.0))
        found[each["place"]][term] = tuple(a + b for a, b in zip(before, sizes, strict=True))
    return found


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_terms_of_a_breakdown(row):
    found = places(
        row["model"], row["args"], engine=row.get("engine", "llama.cpp"), weights=row.get("weights")
    )
    for place, terms in row["expect"].items():
        for term, (measured, how) in terms.items():
            central, low, high = found[place][term]
            shown = f"{place} {term}: {central:.2f} ({low:.2f} to {high:.2f}), measured {measured}"
            if how == "range":
                assert low <= measured <= high, shown
            elif how == "cut":
                assert measured <= central < measured + 1, shown
            else:
                assert central == pytest.approx(measured, rel=how, abs=0.005), shown


def test_the_verdict_of_a_breakdown_that_does_not_fit():
    # The breakdown's own projection: 33,975 MiB where 31,153 of 32,111 are free.
    args = next(row["args"] for row in ROWS if row["id"] == "breakdown-090")
    answer = kvgauge.fit(
        "Qwen/Qwen3.5-27B", memory="32111MiB", engine="llama.cpp", engine_args=args, weights="q4_k_m",
        suggestions=False,
    )  # fmt: skip
    assert answer.to_dict()["verdict"]["status"] == "does_not_fit"


@pytest.mark.parametrize("same", ["-cmoe", "-ncmoe 48", "-ot exps=CPU", r"-ot blk\..*_exps\.=CPU"])
@pytest.mark.parametrize("weights", [None, "q4_k_m"])
def test_experts_on_the_host_by_any_flag(same, weights):
    plain, moved = (
        places(MOE, args, weights=weights)
        for args in ("-c 4096", f"-c 4096 {same}")
    )  # fmt: skip
    experts = 48 * 3 * 128 * 768 * 2048  # gate, up and down of all experts
    bytes_each = {None: 2.0}.get(weights)
    gone = (plain["gpu:0"]["weights"][0] - moved["gpu:0"]["weights"][0]) * MIB
    if bytes_each is not None:
        assert gone == experts * bytes_each
    assert moved["gpu:0"]["weights"][0] + gone / MIB == pytest.approx(plain["gpu:0"]["weights"][0])
    assert moved["gpu:0"]["context"] == plain["gpu:0"]["context"]
    # The first device works on them in a copy of one matrix at a time.
    assert moved["gpu:0"]["compute"][0] > plain["gpu:0"]["compute"][0] + 100
    still = places(MOE, f"-c 4096 {same} --no-op-offload", weights=weights)
    assert still["gpu:0"]["compute"] == plain["gpu:0"]["compute"]


def test_overrides_of_some_blocks_and_of_other_devices():
    def gpu(args):
        found = places(MOE, args, weights="q4_k_m")
        return [found[place]["weights"][0] for place in ("gpu:0", "gpu:1") if place in found]

    one = gpu("-c 4096")[0] - gpu(r"-c 4096 -ot blk\.1\.ffn_.*_exps=CPU")[0]
    two = gpu("-c 4096")[0] - gpu(r"-c 4096 -ot blk\.(1|2)\.ffn_.*_exps=CPU")[0]
    again = gpu("-c 4096")[0] - gpu(r"-c 4096 -ot blk\.1\.ffn_.*_exps=CPU -ot blk\.2\.ffn_.*_exps=CPU")[0]
    assert 0 < one < two == again
    first, second = gpu("-c 4096 -ts 1,1")
    moved = gpu(r"-c 4096 -ts 1,1 -ot blk\.1\.ffn_.*_exps=CUDA1")
    assert moved[0] == pytest.approx(first - one)
    assert moved[1] == pytest.approx(second + one)


@pytest.mark.parametrize(
    "args",
    ["-ot exps", "-ot =CPU", "-ot exps=", "-ot exps=GPU", "-ot (=CPU", "-ot (a+)+=CPU", "-ot .*.*.*.*=CPU",
     "-ot '" + ".?" * 60 + "x=CPU'", "-ot '" + "(.|.)" * 60 + "x=CPU'",
     r"-ot '(a)\1=CPU'", "-ot (?<=a)b=CPU", "-ot " + "a" * 600 + "=CPU", "-ot exps=CUDA7", "-ot"],
)  # fmt: skip
def test_overrides_that_are_refused(args):
    with pytest.raises(InvalidRequestError) as refused:
        kvgauge.size(MOE, engine="llama.cpp", engine_args=args)
    assert refused.value.field == "engine-args"


def test_overrides_of_any_text_end_soon():
    rng = random.Random(6)  # noqa: S311 - a fuzz
    letters = "ab.*+?()[]{}|\\^$=,0CPUexps"
    for _ in range(500):
        text = "".join(rng.choice(letters) for _ in range(rng.randrange(1, 40)))
        try:
            told = parse_overrides(text)
        except KvgaugeError:
            continue
        assert all(device is None or device < 100 for _, device in told)


def test_several_devices_copy_masks_only_where_all_lies_on_them():
    def compute(args):
        return places(MOE, f"-c 32768 -ts 1,1 {args}", weights="q4_k_m")["gpu:1"]["compute"][0]

    mask = 2 * 512 * 32768 / MIB
    rows = 4 * 4 * 512 * 2048 / MIB
    assert compute("") - compute("-sm row") == pytest.approx(3 * mask + rows)
    assert compute("-ot exps=CPU") == compute("-sm row")


def test_flags_join_and_settings_tell():
    many = "|".join(str(number) for number in range(60))
    assert settings_of(rf"-ot 'blk\.({many})\.ffn_(up|gate|down)_exps.*=CPU'").overrides
    told = settings_of("-ot a=CPU -ot b=CUDA0 -nopo").overrides
    assert told == (("a", None), ("b", 0))
    assert not settings_of("-rtr").copies_weights
