"""``plan``: options that are answers of ``fit``, their order and reasons, and the decision."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kvgauge
from kvgauge.cli.app import execute
from kvgauge.cli.completion import offers
from kvgauge.errors import DamagedFileError, InvalidFieldError, InvalidRequestError, KvgaugeError
from kvgauge.hardware import accelerator, all_accelerators
from kvgauge.planning.asking import Asked
from kvgauge.planning.cases import OWN, Formats
from kvgauge.planning.devices import devices_of
from kvgauge.planning.layouts import Space
from kvgauge.planning.prices import PriceTable, parse_prices
from kvgauge.planning.rules import engine_rules, plan_rules
from kvgauge.planning.search import Machine, machines_of
from kvgauge.preparing import Options
from test_schemas import validate

GIB = 1 << 30
SMALL = "Qwen/Qwen3-8B"
LLAMA = "meta-llama/Llama-3.1-70B-Instruct"
LATENT = "deepseek-ai/DeepSeek-V3.2"
HYBRID = "Qwen/Qwen3.5-35B-A3B"

#: 1.0e12 parameters in routed experts, by shape: 61 layers x 384 experts x 3 x 7168 x 2048 is 1.03e12.
TRILLION = "moonshotai/Kimi-K2-Instruct"


@lru_cache(maxsize=16)
def loaded(name: str) -> kvgauge.Model:
    return kvgauge.load(name, offline=True)


def planned(model: str = SMALL, **words: object) -> kvgauge.PlanResult:
    return kvgauge.plan(loaded(model), **words)


def answers(result: kvgauge.PlanResult) -> dict[str, dict[str, object]]:
    """Return the decision by the code of its questions."""
    return {str(step["code"]): step for step in (step.to_dict() for step in result.decision_path)}


def spread(option) -> tuple[int, ...]:
    ranks = option.parallelism
    return ranks.tensor, ranks.pipeline, ranks.data, ranks.expert, ranks.context


# What must come out


@pytest.mark.parametrize("gpu", ["L4", "RTX 4090", "RTX 3090", "A10G"])
def test_qwen3_8b_on_24_gb(gpu):
    """15.3 GiB of weights fit one card, 36 GiB of cache do not: four at 16 bits, two at best with half of it."""
    result = planned(context="32k", sequences=8, gpu=gpu)
    by_cache = {option.formats.kv: option for option in reversed(result.options)}
    assert (by_cache[None].num_gpus, spread(by_cache[None])[:2]) == (4, (4, 1))
    assert {option.num_gpus for cache, option in by_cache.items() if cache is not None} <= {2}
    asked = answers(result)
    assert asked["published"]["question"].startswith("Would the published checkpoint ")
    assert asked["weights"]["answer"] == "yes"
    assert asked["cache"]["answer"] == "no"
    assert "the load needs 36.0 GiB" in asked["cache"]["because"]
    assert asked["tensor"]["answer"] == "4"
    assert asked["small_cache"]["answer"] == "no"
    assert "short on each GPU" in by_cache[None].rank_reason


def test_llama_3_1_70b_on_h100():
    """131 GiB of weights and 160 GiB of cache: eight at 16 bits, four with half the cache."""
    result = planned(LLAMA, context="128k", sequences=4, gpu="H100")
    found = [(o.formats.kv, o.num_gpus, spread(o)) for o in result.options]
    assert found[0] == ("fp8", 4, (4, 1, 1, 1, 1))
    assert found[1] == (None, 8, (8, 1, 1, 1, 1))
    asked = answers(result)
    assert asked["weights"]["answer"] == "no"
    assert asked["tensor"]["answer"] == "8"
    assert re.search(r"TP4: (7[3-9]|8\d)\.\d GiB of 72\.\d GiB", asked["tensor"]["because"])
    own = planned(LLAMA, context="128k", sequences=4, gpu="H100", kv_dtype="auto").options[0]
    assert (own.num_gpus, spread(own)) == (8, (8, 1, 1, 1, 1))


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_latents_are_spread_by_replicas_or_context_before_plain_ranks(engine):
    result = planned(LATENT, context="32k", sequences=8, gpu="H200:8", engine=engine)
    own = [option for option in result.options if option.formats.weights_order == 0]
    assert {option.num_gpus for option in own} == {8}
    plain = [place for place, o in enumerate(own) if spread(o)[2] == spread(o)[4] == 1]
    assert plain == [len(own) - 1]
    assert len(own) > 1
    kinds = {(spread(o)[2] > 1, spread(o)[4] > 1) for o in own[:-1]}
    assert kinds <= {(True, False), (False, True), (True, True)}
    step = answers(result)["latents"]
    assert "data-parallel attention or context parallelism first" in step["answer"]
    assert re.search(r"TP1: (\S+ GiB) of cache on each GPU; TP8: \1 of cache", step["because"])


def test_two_kv_heads_save_nothing_past_two_ranks():
    result = planned(HYBRID, context="128k", sequences=8, gpu="H100")
    assert "no KV saving past TP 2" in answers(result)["heads"]["answer"]
    assert result.options[0].num_gpus == 2
    assert answers(result)["state"]["because"].startswith("30 layers")


@pytest.mark.parametrize(("weights", "least"), [(None, 8), ("fp8", 8), ("bf16", 16)])
def test_a_trillion_parameters_in_sram(weights, least):
    """8 bits of 1e12 parameters and more are 1e12 bytes and more; a rack has 128e9."""
    result = planned(TRILLION, gpu="Groq 3 LPX rack", weights=weights)
    assert result.options == ()
    step = answers(result)["racks"]
    racks = int(step["answer"].removeprefix("at least "))
    stored = loaded(TRILLION).weighed.stored.num_parameters
    assert racks >= least
    assert racks == pytest.approx(stored * (2 if weights == "bf16" else 1) / 128e9, rel=0.15)


def test_racks_are_no_option_beside_others():
    result = planned(gpu="Groq 3 LPX rack, L40S")
    assert [option.device.name for option in result.options] == ["L40S"]
    assert "racks" in answers(result)


# An option is an answer of fit


LOADS = st.tuples(
    st.sampled_from([SMALL, HYBRID, LATENT, "google/gemma-3-27b-it", "openai/gpt-oss-20b"]),
    st.sampled_from(["L4", "H100", "H200", "RTX 4090", "MI300X", "B200", "A100 80GB:4", "RTX 3090:3"]),
    st.sampled_from(["vllm", "sglang", "tensorrt-llm", "llama.cpp", "vllm@0.19.0"]),
    st.integers(256, 60_000),
    st.integers(1, 24),
)


@settings(max_examples=25, deadline=None)
@given(LOADS)
def test_an_option_asked_again_is_the_same(load):
    """By its words through the command line, by keywords, and through the case that chose it."""
    model, gpu, engine, context, sequences = load
    try:
        result = planned(model, gpu=gpu, engine=engine, context=context, sequences=sequences)
    except KvgaugeError:
        return
    validate("plan", result.to_dict())
    for option in result.options:
        validate("fit", option.to_dict())
        fit = option.fit
        assert fit.verdict.status == "fits"
        assert fit.verdict.slack_bytes * 100 >= 3 * fit.verdict.available_bytes
        assert len(fit.devices) * option.parallelism.data in (option.num_gpus, 1)
        assert option.num_gpus == option.parallelism.num_gpus
        needed = fit.verdict.required_bytes - fit.verdict.taken_bytes
        room = fit.verdict.available_bytes - fit.verdict.taken_bytes
        assert option.headroom == pytest.approx(room / needed)


@settings(max_examples=25, deadline=None)
@given(LOADS)
def test_a_launch_line_is_the_option(load):
    """Given back as the engine's own flags, it makes the same ranks and the same verdict."""
    model, gpu, engine, context, sequences = load
    try:
        result = planned(model, gpu=gpu, engine=engine, context=context, sequences=sequences)
    except KvgaugeError:
        return
    for option in result.options:
        device, name = option.device, option.fit.model
        again = kvgauge.fit(
            name, **device.words, num_gpus=option.num_gpus, engine=engine, context=context, sequences=sequences,
            engine_args=option.fit.launch_command, weights=option.formats.weights,
        )  # fmt: skip
        assert again.request.parallelism == option.parallelism
        assert again.verdict == option.fit.verdict


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (SMALL, {"gpu": "L4", "context": "32k", "sequences": 8}),
        (SMALL, {"memory": "23GiB", "context": "32k", "sequences": 8, "utilization": "0.95"}),
        (LATENT, {"gpu": "H200:8", "sequences": 8, "engine": "sglang"}),
        (HYBRID, {"gpu": "H100", "context": "128k", "sequences": 8, "reserve": "2GiB"}),
        (SMALL, {"gpu": "M4 Max", "engine": "llama.cpp", "context": "8k"}),
    ],
)
def test_the_words_of_an_option_give_it_again(model, words, capsys):
    for option in planned(model, **words).options:
        assert execute(["fit", option.fit.model.raw.id, *option.words, "--json"]) == 0
        again = json.loads(capsys.readouterr().out)
        ours = option.to_dict()
        for key in ("verdict", "devices", "kv_pool", "launch_command", "max_sequences", "max_context_tokens"):
            assert again[key] == ours[key], key


def asked_of(model: str, engine: str = "vllm", **options: object) -> Asked:
    return Asked(loaded(model), Options(**options), engine)


@settings(max_examples=60, deadline=None)
@given(
    LOADS, st.sampled_from([OWN, Formats(kv="fp8"), Formats(weights="int4")]), st.sampled_from([1, 2, 4, 8])
)
def test_what_a_bound_rules_out_does_not_fit(load, formats, count):
    """No layout of a machine that was skipped is an option, and skipping changes no verdict."""
    model, gpu, engine, context, sequences = load
    asked = asked_of(model, engine, context=context * 4, sequences=sequences)
    try:
        (device,) = devices_of(gpu, None, None, asked.rules, PriceTable())
        space, evaluator = asked.space, asked.evaluator
        is_hopeless = evaluator.is_hopeless(device, count, formats)
    except KvgaugeError:
        return
    for layouts in space.layouts(count):
        for layout in layouts:
            quick = evaluator.ask(device, layout, formats)
            whole = evaluator.ask(device, layout, formats, whole=True)
            assert (quick.failure is None) == (whole.failure is None)
            if is_hopeless or quick.is_cut_short:
                assert whole.failure is not None


# Order


def test_options_stand_by_price():
    result = planned(LLAMA, context="32k", sequences=8, top=8)
    own = [option for option in result.options if option.formats.weights_order == 0]
    prices = [option.price_per_hour for option in own]
    assert None not in prices
    assert all(before <= after for before, after in pairwise(prices))
    assert own[0].rank_reason.startswith("the cheapest that holds the load")
    assert all(option.formats.weights_order for option in result.options[len(own) :])


def test_fewer_gpus_of_the_same_do_not_hold_it():
    for option in planned(SMALL, context="64k", sequences=12, top=6).options:
        if option.formats.num_changes:
            continue
        fewer = [count for count in plan_rules().counts if count < option.num_gpus]
        if fewer:
            again = planned(
                SMALL, context="64k", sequences=12, gpu=f"{option.device.name}:{fewer[-1]}", kv_dtype="auto"
            )
            assert not [o for o in again.options if o.formats.weights_order == 0]


def test_without_prices_fewest_gpus_then_headroom():
    result = planned(LLAMA, context="32k", sequences=8, gpu="H100 NVL, H20, H800", kv_dtype="auto")
    own = [option for option in result.options if option.formats.weights_order == 0]
    assert {option.price_per_hour for option in own} == {None}
    order = [(option.num_gpus, -option.headroom) for option in own]
    assert order == sorted(order)
    assert "no price is known" in own[0].rank_reason


def test_one_option_leaves_the_formats_as_they_are():
    result = planned(SMALL, context="32k", sequences=8)
    assert any(not o.formats.num_changes for o in result.options)


def test_other_weights_are_marked_and_last():
    """A published checkpoint of the same layers, then a quantisation that nobody is known to offer."""
    result = planned(HYBRID, context="128k", sequences=8, gpu="H100")
    orders = [option.formats.weights_order for option in result.options]
    assert orders == sorted(orders)
    last = result.options[-1]
    assert last.formats.checkpoint == last.fit.model.raw.id
    assert last.formats.checkpoint.startswith(HYBRID)
    assert f"another published checkpoint: {last.formats.checkpoint}" in last.rank_reason
    assert last.num_gpus < result.options[0].num_gpus
    made = planned(TRILLION, context="128k", sequences=32, gpu="H100").options[-1]
    assert f"{made.formats.weights}, which this checkpoint does not offer" in made.rank_reason
    asked = planned(HYBRID, context="128k", sequences=8, gpu="H100", weights="int4")
    assert {option.formats.num_changes for option in asked.options} == {0}
    assert asked.options[0].num_gpus == 1


def test_other_weights_and_half_the_cache_together():
    """Neither a published checkpoint nor an 8-bit cache alone does on this card."""
    words = {"gpu": "RTX 4070:1", "context": "32k", "offline": True}
    alone = kvgauge.plan("Qwen/Qwen3-8B", kv_dtype="bf16", **words)
    both = kvgauge.plan("Qwen/Qwen3-8B", **words)
    assert not alone.options
    assert both.best.formats.checkpoint
    assert both.best.formats.kv == "fp8"
    assert "--kv-cache-dtype fp8" in both.best.fit.launch_command
    again = kvgauge.fit(command=both.best.fit.launch_command, gpu="RTX 4070", context="32k", offline=True)
    assert again.verdict.fits


def test_formats_of_one_maker_stay_on_its_cards():
    result = planned(LATENT, context="32k", sequences=16, gpu="MI300X, B200")
    found = {o.formats.checkpoint: o.device.name for o in result.options}
    assert found["nvidia/DeepSeek-V3.2-NVFP4"] == "B200"
    assert "Instinct MI300X" in found.values()


def test_a_given_price_goes_first(tmp_path):
    file = tmp_path / "prices.json"
    file.write_text(
        json.dumps({"H200": {"usd_per_hour": 0.5, "date": "2026-11-02", "source": "ours"}, "L4": 9}),
        encoding="utf-8",
    )
    best = planned(SMALL, context="32k", sequences=8, price_file=str(file)).best
    assert best is not None
    assert (best.device.name, best.price_per_hour) == ("H200 SXM", 0.5)
    assert best.to_dict()["price"] == {
        "usd_per_hour": 0.5, "date": "2026-11-02", "grade": "given", "source": "ours",
    }  # fmt: skip


def test_what_is_pinned_is_not_searched():
    result = planned(SMALL, context="32k", sequences=8, gpu="L4", tp=2, kv_dtype="fp8")
    assert {option.parallelism.tensor for option in result.options} == {2}
    assert {option.formats.kv for option in result.options} == {None}
    flags = planned(SMALL, context="32k", sequences=8, gpu="L4", engine_args="-tp 8 --kv-cache-dtype fp8")
    assert {option.parallelism.tensor for option in flags.options if not option.formats.weights_order} == {8}


def test_prompt_and_output_are_the_context():
    parts = planned(SMALL, gpu="L40S", prompt_tokens="30k", output_tokens=2048, shared_prefix="4k")
    assert parts.best.fit.request.workload.context_tokens == 32768
    assert parts.best.fit.request.workload.shared_prefix_tokens == 4096
    with pytest.raises(InvalidRequestError, match="sum of"):
        planned(SMALL, gpu="L40S", context="32k", prompt_tokens=5)


# Space and devices


def test_layouts_fill_the_gpus_and_divide_the_heads():
    space = Space(engine_rules("vllm"), 64, 8, False, False, 16)
    for count in (1, 2, 3, 8, 16, 24):
        for layouts in space.layouts(count):
            for layout in layouts:
                assert layout.num_gpus == count
                assert 64 % layout.tensor == 0
                assert layout.tensor <= 8
                assert layout.pipeline <= 4


def test_absurd_numbers_are_no_trouble():
    for gpu, sequences in (("H100:65536", 100_000), ("H100:4097", 5000), ("L4", 1 << 30)):
        result = planned(SMALL, gpu=gpu, sequences=sequences, context="32k")
        assert all(option.parallelism.data <= sequences for option in result.options)
        validate("plan", result.to_dict())


def test_replicas_of_experts_share_them():
    space = Space(engine_rules("vllm"), 128, 0, True, True, 64)
    layouts = next(iter(space.layouts(8)))
    assert {layout.expert for layout in layouts if layout.data > 1} == {8}
    assert {layout.context for layout in layouts if layout.tensor == 8} == {1, 8}
    alone = Space(engine_rules("vllm"), 128, 0, True, True, 1)
    assert {layout.data for layout in next(iter(alone.layouts(8)))} == {1}


def test_the_devices_that_nobody_names():
    """Datacentre and workstation cards of current generations, and priced ones of those before."""
    marked = [device for device in all_accelerators() if device.planned]
    assert 30 < len(marked) < 90
    assert {device.kind for device in marked} == {"datacenter", "workstation"}
    for device in marked:
        assert device.prices or (device.year or 0) >= 2022 or device.architecture == "8.9"
    assert accelerator("h200-sxm").planned
    assert not accelerator("v100-sxm2-32gb").planned
    names = {device.name for device in devices_of(None, None, None, engine_rules("vllm"), PriceTable())}
    assert names == {device.name for device in marked}


def test_every_device_by_a_word():
    rules = engine_rules("vllm")
    every = devices_of("all", None, None, rules, PriceTable())
    assert len(every) > 140
    assert not {device.kind for device in every} & {"sram", "tpu", "asic"}
    assert len(devices_of("all", None, None, engine_rules("llama.cpp"), PriceTable())) > len(every)
    assert not [m for m in machines_of(every) if m.device.kind == "laptop" and m.count > 1]
    assert max(m.count for m in machines_of(every) if m.device.kind == "workstation") == 8
    counts = devices_of("H100:6", None, None, rules, PriceTable())[0].counts()
    assert counts == (1, 2, 4, 6)


def test_machines_stand_by_cost():
    machines = machines_of(devices_of(None, None, None, engine_rules("vllm"), PriceTable()))
    orders = [machine.order for machine in machines]
    assert orders == sorted(orders)
    assert isinstance(machines[0], Machine)


def test_own_devices_are_looked_at(tmp_path):
    file = tmp_path / "own.json"
    rows = [
        {"name": "Lab card", "memory": "47.4GiB", "architecture": "8.9", "prices": [{"usd_per_hour": 0.7}]},
        {"name": "Lab giant", "memory": "200GiB", "architecture": "9.0", "prices": [{"usd_per_hour": 5}]},
    ]
    file.write_text(json.dumps({"gpus": rows}), encoding="utf-8")
    result = planned(SMALL, context="32k", sequences=8, gpu_file=str(file), kv_dtype="auto")
    assert [(o.device.name, o.num_gpus, o.price_per_hour) for o in result.options][:2] == [
        ("Lab card", 2, 1.4),
        ("Lab giant", 1, 5),
    ]


# Refusals


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ({"gpu": "H10O"}, "gpu"), ({"gpu": ","}, "gpu"), ({"top": 0}, "top"), ({"top": True}, "top"),
        ({"engine": "theory"}, "engine"), ({"context": "x"}, None), ({"sequences": 0}, "sequences"),
        ({"utilization": "2"}, "utilization"), ({"price_file": "/no/such"}, "price_file"),
        ({"reserve": "lots"}, None),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused(words, field):
    with pytest.raises(KvgaugeError) as error:
        planned(SMALL, **words)
    assert error.value.field == field


def test_prices_are_checked():
    assert parse_prices(b'{"RTX 4090": {"usd": 1500, "usd_per_hour": 0.3}}', "x").own
    for bad in (b"[]", b"", b'{"a": -1}', b'{"a": {"x": 1}}', b'{"a": true}', b'{"a": {"usd": 1, "date": "x"}}',
                b'{"a": 1e400}', b'{"a": {"usd": "1"}}', b'{"a": {}}', b'{"a": {"usd": 1, "source": 3}}'):  # fmt: skip
        with pytest.raises((DamagedFileError, InvalidFieldError)):
            parse_prices(bad, "x")
    with pytest.raises(DamagedFileError):
        parse_prices(b" " * (1 << 20) + b"{}", "x")


@settings(max_examples=150, deadline=None)
@given(
    st.one_of(
        st.binary(max_size=200),
        st.dictionaries(
            st.text(max_size=20),
            st.recursive(
                st.none() | st.booleans() | st.floats() | st.text(max_size=8),
                lambda inner: st.dictionaries(
                    st.sampled_from(["usd", "usd_per_hour", "date", "source", "x"]), inner, max_size=4
                ),
                max_leaves=6,
            ),
            max_size=4,
        ).map(lambda rows: json.dumps(rows).encode()),
    )
)
def test_any_price_file_is_read_or_refused(data):
    try:
        table = parse_prices(data, "x")
    except KvgaugeError:
        return
    for prices in table.own.values():
        assert all(0 < price.usd <= 1e9 for price in prices)


# The command


def test_check_is_exit_code_3(capsys):
    argv = ["plan", LLAMA, "--gpu", "RTX 4060:1", "--check", "--json"]
    assert execute(argv) == 3
    answer = json.loads(capsys.readouterr().out)
    validate("plan", answer)
    assert answer["options"] == []
    assert execute(argv[:-2]) == 0
    assert execute([*argv[:2], "--gpu", "H200:2", "--check"]) == 0


def test_several_models_are_a_line_each(capsys):
    code = execute(["plan", SMALL, "no/such-model", HYBRID, "--gpu", "H200", "--json", "--offline"])
    out, err = capsys.readouterr()
    lines = [json.loads(line) for line in out.splitlines()]
    assert (code, err, len(lines)) == (1, "", 3)
    validate("plan", lines[0])
    validate("error", lines[1])
    assert [lines[n]["model"]["id"] for n in (0, 2)] == [SMALL, HYBRID]
    assert execute(["plan", SMALL, HYBRID, "--gpu", "H200"]) == 0
    assert capsys.readouterr().out.count("How the decision goes") == 2


def test_requests_come_as_lines(tmp_path, capsys):
    file = tmp_path / "requests.ndjson"
    rows = [
        {"model": SMALL, "gpu": "L4", "context": "32k", "sequences": 8},
        {"model": SMALL, "gpu": "no such card"},
        {"gpu": "H100", "nonsense": 1},
        {"context": "8k"},
    ]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    assert execute(["plan", HYBRID, "--gpu", "H200", "--ndjson", str(file)]) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["schema"] for line in lines] == [
        "kvgauge.plan/1", "kvgauge.error/1", "kvgauge.error/1", "kvgauge.plan/1",
    ]  # fmt: skip
    assert lines[0]["options"][0]["gpu"] == "L4"
    assert lines[3]["model"]["id"] == HYBRID
    assert execute(["plan", "--json"]) == 2


def test_chinese_says_the_same(capsys):
    argv = ["plan", LATENT, "--gpu", "H200:8", "--sequences", "8", "--json"]
    assert execute([*argv, "--lang", "zh"]) == 0
    chinese = json.loads(capsys.readouterr().out)
    assert execute(argv) == 0
    english = json.loads(capsys.readouterr().out)
    for one, other in zip(chinese["decision_path"], english["decision_path"], strict=True):
        assert one["code"] == other["code"]
        assert re.search("[\u4e00-\u9fff]", one["question"])
        numbers = [re.findall(r"[\d.,]+ GiB", text) for text in (one["because"], other["because"])]
        assert numbers[0] == numbers[1]
    for one, other in zip(chinese["options"], english["options"], strict=True):
        assert re.search("[\u4e00-\u9fff]", one["rank_reason"])
        assert one["launch_command"] == other["launch_command"]


def test_markdown_and_notebook():
    result = planned(SMALL, context="32k", sequences=8, gpu="L4")
    assert "vllm serve" in result._repr_html_()
    assert execute(["plan", SMALL, "--gpu", "L4", "--markdown"]) == 0


def test_a_line_is_completed():
    assert "plan" in offers(["pl"])
    assert "--price-file" in offers(["plan", SMALL, "--pr"])
    assert "L4" in [word.upper() for word in offers(["plan", SMALL, "--gpu", "l4"])]
    assert SMALL in offers(["plan", "Qwen/Qwen3-8"])
