"""Devices of an own file, devices of this machine, and the command that lists them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvgauge.cli.app import execute
from kvgauge.cli.completion import FILES, offers
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError, KvgaugeError
from kvgauge.hardware import accelerator, all_accelerators, local, parse_gpu, read_gpu_file
from kvgauge.hardware.files import MAX_FILE_BYTES, parse_gpu_file
from kvgauge.hardware.local import local_gpus, parse_nvidia_smi, parse_rocm_smi, parse_sysctl
from kvgauge.render.messages.errors_zh import chinese
from kvgauge.units import GIB, MIB

OWN = {"name": "Lab card", "memory": "47.4GiB"}


def read(row: object) -> tuple:
    return parse_gpu_file(json.dumps(row).encode(), "gpus.json")


def test_a_name_and_a_memory_are_enough(tmp_path):
    file = tmp_path / "gpus.json"
    file.write_text(json.dumps({"gpus": [OWN, {**OWN, "name": "Other", "aliases": ["NVIDIA H100"]}]}))
    own = read_gpu_file(file)
    assert (own[0].id, own[0].memory.grade, own[0].memory.source) == ("lab-card", "exact", "own file")
    device, count = parse_gpu("2x LAB-card", own)
    assert (device, count) == (own[0], 2)
    assert parse_gpu("nvidia h100", own)[0] is own[1]
    assert parse_gpu("h200", own)[0].id == "h200-sxm"
    with pytest.raises(InvalidRequestError, match="no device") as caught:
        parse_gpu("lab crd", own)
    assert "Lab card" in caught.value.hint


def test_every_row_that_is_printed_can_be_read_back():
    for device in all_accelerators():
        assert read(device.to_dict()) == (device,)
    assert len(read({"schema": "kvgauge.gpus/1", "gpus": [d.to_dict() for d in all_accelerators()]})) > 200


def test_numbers_may_stand_alone():
    row = {
        **OWN,
        "bandwidth_gb_per_second": 960,
        "dense_tflops": {"bf16": 100},
        "prices": [{"usd_per_hour": 1}],
    }
    device = read(row)[0]
    assert (device.bandwidth.value, device.bandwidth.grade) == (960, "given")
    assert device.dense_tflops.by_dtype == (("bf16", 100),)
    assert device.price_per_hour.usd == 1


BAD_ROWS = [
    ({}, "name is missing"),
    ({"name": "a"}, "memory is missing"),
    ({**OWN, "memory": {"low_bytes": 1}}, "memory.central_bytes is missing"),
    ({**OWN, "memory": {"low_bytes": 2, "central_bytes": 1}}, "memory is not a range"),
    ({**OWN, "memory": 0}, "memory is not a size"),
    ({**OWN, "memory": "much"}, "memory is not a size"),
    ({**OWN, "memory": True}, "memory is not a size"),
    ({**OWN, "memory": 1 << 60}, "memory is not a size"),
    ({**OWN, "memory": {"central_bytes": 1, "x": 1}}, "'x' is no field"),
    ({**OWN, "memory": {"central_bytes": 1, "grade": "sure"}}, "memory.grade is not one of"),
    ({**OWN, "vram": 1}, "'vram' is no field"),
    ({**OWN, "name": ""}, "name is not a text"),
    ({**OWN, "name": "a\x1b[31m"}, "name is not a text"),
    ({**OWN, "name": "a" * 500}, "name is not a text"),
    ({**OWN, "kind": "toaster"}, "kind is not one of"),
    ({**OWN, "kind": []}, "kind is not one of"),
    ({**OWN, "year": 20250}, "year is not a whole number"),
    ({**OWN, "power_watts": -1}, "power_watts is not a number"),
    ({**OWN, "power_watts": float("nan")}, "power_watts is not a number"),
    ({**OWN, "bandwidth_gb_per_second": {"value": 1, "unit": "TB"}}, "'unit' is no field"),
    ({**OWN, "bandwidth_gb_per_second": {"x": 1}}, "bandwidth_gb_per_second is not a number"),
    ({**OWN, "dense_tflops": {"fp7": 1}}, "dense_tflops is not one of"),
    ({**OWN, "dense_tflops": 5}, "dense_tflops is not an object"),
    ({**OWN, "link": {"gb_per_second": 1}}, "link is not an object"),
    ({**OWN, "aliases": "a"}, "aliases is not a list"),
    ({**OWN, "aliases": [1]}, "aliases is not a text"),
    ({**OWN, "prices": {}}, "prices is not a list"),
    ({**OWN, "prices": [{"usd": 1, "usd_per_hour": 1}]}, "prices is not a price"),
    ({**OWN, "prices": [{"usd": 1, "eur": 1}]}, "'eur' is no field"),
    ({**OWN, "prices": [{"usd": 1, "date": "today"}]}, "prices.date is not a date"),
    ({"gpus": []}, "gpus is no list"),
    ({"gpus": {}}, "gpus is no list"),
    ({"gpus": [1]}, "gpus[0] is no object"),
    ({"gpus": [OWN], "x": 1}, "'x' is no field"),
    ({"gpus": [OWN, OWN]}, "two rows have the name"),
    ({"gpus": [OWN, {"name": "b"}]}, "gpus[1].memory is missing"),
]


@pytest.mark.parametrize(("row", "message"), BAD_ROWS)
def test_what_a_file_may_not_say(row, message):
    with pytest.raises(KvgaugeError) as caught:
        read(row)
    assert message in caught.value.message
    assert caught.value.hint
    for text in (caught.value.message, caught.value.hint):
        assert chinese(text) != text


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{", b"\xff", b"[" * 5000, b'{"a":1,"a":2}', b" " * (MAX_FILE_BYTES + 1)]
)
def test_what_is_no_file_of_devices(data):
    with pytest.raises(KvgaugeError) as caught:
        parse_gpu_file(data, "gpus.json")
    assert "kvgauge gpus NAME --json" in caught.value.hint


def test_a_file_that_is_not_there(tmp_path):
    for path in (tmp_path / "no", tmp_path, "a\x00b"):
        with pytest.raises(KvgaugeError, match="can't read"):
            read_gpu_file(path)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["value", "grade", "usd"]), inner)
    ),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*accelerator("t4").to_dict(), "gpus"]), _VALUES, max_size=8))
def test_no_file_breaks_the_reader(row):
    for document in (row, {**OWN, **row}, {"gpus": [row]}):
        try:
            devices = read(document)
        except KvgaugeError as error:
            assert error.message
        else:
            assert all(device.memory_bytes > 0 for device in devices)


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """Return a function that puts a program on the path, which has no other."""
    if os.name == "nt":
        pytest.skip("the stand-ins are shell scripts")
    monkeypatch.setenv("PATH", str(tmp_path))

    def put(name: str, body: str) -> Path:
        file = tmp_path / name
        file.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        file.chmod(0o755)
        return file

    return put


def says(text: str) -> str:
    return f"while read -r line; do echo \"$line\"; done <<'END'\n{text}\nEND"


def test_nvidia_smi(tools):
    tools("nvidia-smi", says("NVIDIA H100 80GB HBM3, 81559\nNVIDIA H100 80GB HBM3, 81559"))
    ((device, count),) = local_gpus()
    assert (device.id, count) == ("h100-sxm5-80gb", 2)
    assert (device.smi_total.value, device.smi_total.source) == (81_559 * MIB, "this machine")
    assert parse_gpu(" Local ") == (device, 2)


@pytest.mark.parametrize(
    ("name", "mib", "found"),
    [
        ("NVIDIA GeForce RTX 4060 Ti", 16380, "rtx-4060-ti-16gb"),
        ("NVIDIA GeForce RTX 4060 Ti", 8188, "rtx-4060-ti-8gb"),
        ("NVIDIA GeForce RTX 3080", 12288, "rtx-3080-12gb"),
        ("NVIDIA A100-SXM4-80GB", 81920, "a100-sxm4-80gb"),
        ("Tesla T4", 15360, "t4"),
        ("NVIDIA GeForce RTX 4090", 49140, "rtx-4090-48gb"),
        ("NVIDIA B300 SXM6 AC", 275040, "b300"),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", 4864, ""),
        ("NVIDIA Z999", 10_000, ""),
    ],
)
def test_the_form_is_told_by_the_memory(tools, name, mib, found):
    tools("nvidia-smi", says(f"{name}, {mib}"))
    device, count = parse_gpu("local")
    assert (device.id, count, device.smi_total.value) == (found, 1, mib * MIB)
    assert device.memory.low_bytes < device.memory_bytes <= mib * MIB


def test_rocm_smi(tools):
    card = {
        "Card Series": "AMD Instinct MI300X OAM",
        "VRAM Total Memory (B)": str(192 * GIB),
        "Card Model": "0x74a1",
    }
    tools("nvidia-smi", "exit 9")
    tools("rocm-smi", says("WARNING: low power\n" + json.dumps({"card0": card, "card1": card, "system": {}})))
    ((device, count),) = local_gpus()
    assert (device.id, count) == ("mi300x", 2)


def test_several_kinds(tools):
    tools("nvidia-smi", says("NVIDIA L4, 23034\nTesla T4, 15360\nNVIDIA L4, 23034"))
    assert [(device.id, count) for device, count in local_gpus()] == [("l4", 2), ("t4", 1)]
    with pytest.raises(InvalidRequestError, match="L4:2, T4:1"):
        parse_gpu("local")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("exit 9", "nvidia-smi ended with code 9"),
        ("echo no devices were found", "nvidia-smi shows no device"),
        ("printf '\\377\\376, 12\\n, ,\\n'; exit 1", "nvidia-smi ended with code 1"),
    ],
)
def test_a_tool_that_knows_nothing(tools, body, why):
    tools("nvidia-smi", body)
    with pytest.raises(FeatureUnsupportedError) as caught:
        parse_gpu("local")
    assert why in caught.value.message
    assert chinese(caught.value.message) != caught.value.message
    assert "--memory" in caught.value.hint


def test_a_tool_that_hangs(tools, monkeypatch):
    tools("nvidia-smi", "while :; do :; done")
    monkeypatch.setattr(local, "TIMEOUT_SECONDS", 0.2)
    with pytest.raises(FeatureUnsupportedError, match=r"gave no answer in 0\.2 s"):
        local_gpus()


def test_a_tool_that_is_no_program(tools):
    tools("nvidia-smi", "").write_bytes(b"\x7fELF nothing")
    with pytest.raises(FeatureUnsupportedError, match=r"can't be run|ended with code"):
        local_gpus()


def test_no_tool(tools):
    with pytest.raises(FeatureUnsupportedError, match="neither nvidia-smi nor rocm-smi is here") as caught:
        local_gpus()
    assert caught.value.field == "gpu"


def test_mac():
    (found,) = parse_sysctl("Apple M3 Max\n68719476736\n")
    assert local.device(found).id == "m3-max-64gb"
    assert parse_sysctl("Intel(R) Core(TM) i9\n17179869184\n") == parse_sysctl("") == []


@given(st.text())
def test_no_answer_of_a_tool_breaks_a_parser(text):
    for parse in (parse_nvidia_smi, parse_rocm_smi, parse_sysctl):
        for found in parse(text):
            assert found.total_bytes >= 0


def test_the_machine_is_asked_for_local_alone(monkeypatch):
    monkeypatch.setattr(local.subprocess, "run", lambda *_, **__: pytest.fail("a tool was run"))
    parse_gpu("H100:8")
    assert execute(["gpus", "h100", "--json"]) == 0


def run(capsys, *words: str) -> tuple[int, str, str]:
    code = execute(["gpus", *words])
    out, err = capsys.readouterr()
    return code, out, err


def test_gpus_lists_all(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    code, out, err = run(capsys)
    assert code == 0
    assert len(out.splitlines()) == 1 + len(list(all_accelerators()))
    assert "~15.5 GiB" in out
    assert "from memory, not looked up" in err


def test_gpus_shows_sources_of_a_few(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    for words in (("h100", "nvl"), ("NVIDIA H100 NVL",)):
        code, out, _ = run(capsys, *words)
        assert code == 0
        assert "93.0 GiB (93.0 GiB to 93.1 GiB), measured: out-of-memory texts" in out
        assert "95,830 MiB, source: Azure H100 NVL machine" in out
        assert "bf16 835, fp8 1,671, int8 1,671, from memory, not looked up" in out
    assert "实测" in run(capsys, "h100", "nvl", "--lang", "zh")[1]


def test_gpus_in_json_and_markdown(capsys):
    _, out, _ = run(capsys, "lpx", "--json")
    answer = json.loads(out)
    assert (answer["schema"], [row["id"] for row in answer["gpus"]]) == (
        "kvgauge.gpus/1",
        ["groq-3-lpx-rack"],
    )
    _, out, _ = run(capsys, "lpx", "--markdown")
    assert out.startswith("| Name | Visible |")
    assert "| Chips | 256 |" in out


def test_gpus_finds_what_a_name_means(capsys):
    assert json.loads(run(capsys, "8060s", "--json")[1])["gpus"][0]["id"] == "strix-halo-128gb"
    assert json.loads(run(capsys, "A100-80G", "--json")[1])["gpus"][0]["id"] == "a100-sxm4-80gb"
    code, out, err = run(capsys, "nothing like it")
    assert (code, out) == (0, "")
    assert "no device in the catalogue matches nothing like it" in err


@pytest.mark.parametrize("columns", ["24", "50", "72", "120"])
def test_gpus_fits_the_terminal(capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    for words in ((), ("h100",), ("apple", "m3 max"), ("--lang", "zh"), ("lpx", "--units", "bytes")):
        _, out, _ = run(capsys, *words)
        assert max(map(len, out.splitlines())) <= int(columns)


def test_completion_of_gpus():
    assert offers(["gpus", "h100-"]) == [
        device.id for device in all_accelerators() if device.id.startswith("h100-")
    ]
    assert offers(["fit", "m", "--gpu", "lo"]) == ["local"]
    assert "h200-sxm" in offers(["m", "--gpu", "H2"])
    assert offers(["m", "--gpu-file", ""]) == [FILES]
    assert offers(["gpus", "h100", "x"]) == []


def test_listing_needs_no_network_and_no_hub_library():
    code = "import sys; from kvgauge.cli.app import execute; execute(['gpus', '--json']); print(sorted(sys.modules), file=sys.stderr)"
    import subprocess

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True)
    assert not {"'huggingface_hub'", "'ssl'", "'rich'", "'subprocess'"} & set(
        done.stderr.strip("[]\n").split(", ")
    )
