"""Rebuild ``src/kvgauge/data/accelerators.jsonl`` and ``accelerator_names.json`` from authored facts.

``accelerator_facts.jsonl`` has one device a line, ``accelerator_sources.json`` what source keys stand for.
Facts of a line:

- ``gb``: memory as it is sold; ``seen``: GiB that runtimes reported as the total, ``usual`` the one to reckon
  with (else the lower median); ``smi_mib``: the total of nvidia-smi; ``rule``: what holds for others
- ``gbs``: memory bandwidth in GB/s; ``tflops``: dense, by data type; ``link``: GB/s and kind; ``watt``
- ``prices``: unit (``hour`` or ``buy``), US dollars, date or null, source
- ``cores``: sets of words, one of which a name must hold; ``words``: words that it may hold besides

Devices that share a core are forms of one name; the first line is the form that the bare name stands for.

Run: ``python tools/accelerators.py``, with ``--check`` to compare only. Nothing else is needed.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

TOOLS = Path(__file__).parent
DATA = TOOLS.parent / "src/kvgauge/data"

GIB = 1 << 30
GB = 10**9
#: Readings are printed with two decimals.
ROUNDING_GIB = 0.005
#: Drivers differ by about that much; added where there is one reading alone.
ONE_READING_GIB = 0.1

Range = tuple[float, float, float]
Facts = Mapping[str, Any]


def _nvidia(label: float) -> Range:
    """What the driver keeps: 0.3 to 1.2 GiB over the cards that were seen, more on larger ones."""
    return label - 0.45 - 0.008 * label, label - 0.4 - 0.006 * label, label - 0.15 - 0.003 * label


def _nvidia_desktop(label: float) -> Range:
    """The same; Windows reports the memory whole."""
    low, central, _ = _nvidia(label)
    return low, central, label


def _below_smi(total: float) -> Range:
    """The same below nvidia-smi's total: 0.3 to 0.9 GiB."""
    return total - 0.6 - 0.0035 * total, total - 0.4 - 0.0015 * total, total - 0.2


def _amd(label: float) -> Range:
    """HIP reports the memory nearly whole: 0.02 GiB less as a rule, 0.3 of 192 in some."""
    return label - 0.1 - 0.002 * label, label - 0.02, label


def _apple(label: float) -> Range:
    """Metal's recommended working set: two thirds up to 32 GB, three quarters above."""
    share = label * 2 / 3 if label <= 32 else label * 3 / 4
    return share, share, share


def _shares(low: float, central: float, high: float) -> Callable[[float], Range]:
    return lambda label: (label * low, label * central, label * high)


#: ECC on GDDR takes a sixteenth.
_ECC = 15 / 16

#: What a runtime reports, in GiB, of a label of so many GB where no reading is known.
RULES: Mapping[str, tuple[Callable[[float], Range], str]] = {
    "nvidia": (_nvidia, "rule: the label less what the driver keeps on cards that were seen"),
    "nvidia_desktop": (_nvidia_desktop, "rule: the label less what the driver keeps on cards that were seen"),
    "nvidia_ecc": (lambda gb: _nvidia(gb * _ECC), "rule: the label less a sixteenth for ECC and the driver"),
    "amd": (_amd, "rule: the label nearly whole, as HIP reports other cards"),
    "amd_ecc": (lambda gb: _amd(gb * _ECC), "rule: the label less a sixteenth for ECC"),
    "intel": (_shares(0.90, 0.94, 1.0), "rule: 90 to 100 % of the label, no reading is known"),
    "other": (_shares(0.93, 0.96, 1.0), "rule: 93 to 100 % of the label, no reading is known"),
    "apple": (_apple, "rule: two thirds of the memory up to 32 GB, three quarters above"),
    "shared": (_shares(0.90, 0.94, 0.97), "rule: 90 to 97 % of memory that the system shares"),
    "gtt": (_shares(0.48, 0.49, 124 / 128), "rule: half of the memory; 124 of 128 GiB with the limit raised"),
    "sram": (_shares(GB / GIB, GB / GIB, GB / GIB), "rule: the label, decimal"),
}  # fmt: skip

#: Sizes of Apple's chips that the rule was seen to hold for.
APPLE_SEEN = (8, 16, 32, 48, 64, 192)
UNIFIED = {"apple": "working_set", "shared": "shared_with_system", "gtt": "gtt_limit"}
#: Sources that prove nothing about this card.
_NO_PROOF = frozenset({"recall", "pattern", "oom_guess"})


def _bytes(gib: float) -> int:
    return round(gib * GIB)


def _range(values: Range, grade: str, source: str) -> dict[str, object]:
    low, central, high = (_bytes(value) for value in values)
    return {"low_bytes": low, "central_bytes": central, "high_bytes": high, "grade": grade, "source": source}


def memory(facts: Facts, sources: Mapping[str, str]) -> dict[str, object]:
    """Return what a runtime reports as the total: a range, how well it is known, and from where."""
    rule, because = RULES[facts["rule"]]
    expected = rule(facts["gb"])
    if facts["rule"] == "apple" and facts["gb"] in APPLE_SEEN:
        return _range(expected, "measured", sources["metal_notebooks"])
    if "seen" not in facts:
        if "smi_mib" in facts and facts["smi_from"] != "recall":
            because = "rule: the total of nvidia-smi less what the driver keeps on other cards"
            expected = _below_smi(facts["smi_mib"] / 1024)
        return _range(expected, "assumed", because)
    seen: list[float] = facts["seen"]
    slack = ROUNDING_GIB if len(seen) > 1 else ONE_READING_GIB
    low, high = min(seen) - slack, max(seen) + slack
    is_measured = not set(facts["seen_from"]) <= _NO_PROOF
    if not is_measured:
        low, high = min(low, expected[0]), max(high, expected[2])
    central = facts.get("usual", statistics.median_low(seen))
    grade = "measured" if is_measured else "assumed"
    return _range(
        (low, central, min(high, facts["gb"])), grade, "; ".join(sources[key] for key in facts["seen_from"])
    )


def _grade(key: str) -> str:
    return "recall" if key == "recall" else "source"


def _figure(value: object, key: str, sources: Mapping[str, str]) -> dict[str, object]:
    return {"value": value, "grade": _grade(key), "source": sources[key]}


#: Kinds that ``plan`` looks at where no device is named.
PLANNED_KINDS = ("datacenter", "workstation")
#: Architectures of these that it looks at: each device of a current one, of others those with a price.
PLANNED = {
    "8.0": "priced", "8.6": "priced", "8.9": "current", "9.0": "current", "10.0": "current",
    "10.3": "current", "12.0": "current", "gfx90a": "priced", "gfx942": "current", "gfx950": "current",
    "gfx1100": "priced", "gfx1201": "current",
}  # fmt: skip


def planned(facts: Facts) -> bool | None:
    """Whether ``plan`` looks at a device that nobody names; None is no."""
    age = PLANNED.get(facts.get("arch") or "") if facts["kind"] in PLANNED_KINDS else None
    return True if age == "current" or (age == "priced" and facts.get("prices")) else None


def row(facts: Facts, sources: Mapping[str, str]) -> dict[str, object]:
    """Return the public form of a device; what is not known is left out."""
    result: dict[str, object] = {
        "id": facts["id"],
        "name": facts["name"],
        "vendor": facts["vendor"],
        "kind": facts["kind"],
        "year": facts["year"],
        "aliases": facts.get("aliases", []),
        "architecture": facts.get("arch"),
        "label_bytes": round(facts["gb"] * (GB if facts["rule"] == "sram" else GIB)),
        "memory": memory(facts, sources),
    }
    if "smi_mib" in facts:
        key = facts["smi_from"]
        result["smi_total"] = {"bytes": facts["smi_mib"] << 20, "grade": _grade(key), "source": sources[key]}
    if "gbs" in facts:
        result["bandwidth_gb_per_second"] = _figure(facts["gbs"], facts["gbs_from"], sources)
    if "tflops" in facts:
        result["dense_tflops"] = _figure(facts["tflops"], facts["tflops_from"], sources)
    if "link" in facts:
        rate, kind = facts["link"]
        result["link"] = {"gb_per_second": rate, "kind": kind}
    result |= {
        "pcie_generation": facts.get("pcie"),
        "power_watts": facts.get("watt"),
        "sram_bytes": round(facts["gb"] * GB) if facts["kind"] == "sram" else None,
        "chips": facts.get("chips", 1),
        "unified": UNIFIED.get(facts["rule"]),
        "prices": [_price(price, sources) for price in facts.get("prices", ())],
        "planned": planned(facts),
        "note": facts.get("note"),
    }
    return {key: value for key, value in result.items() if value not in (None, [])}


def _price(price: list[Any], sources: Mapping[str, str]) -> dict[str, object]:
    unit, dollars, date, key = price
    name = "usd_per_hour" if unit == "hour" else "usd"
    return {name: dollars, "date": date, "grade": _grade(key), "source": sources[key]}


def names(facts: Facts) -> list[object]:
    """Return what tells a device by its name: id, vendor, words to hold, words that may stand beside."""
    words = set(facts["words"])
    if facts["rule"] not in (*UNIFIED, "sram"):
        low = RULES[facts["rule"]][0](facts["gb"])[0]
        for reported in (low, *facts.get("seen", ()), facts.get("smi_mib", 0) / 1024):
            words |= {f"{int(reported)}gb", f"{int(reported + 0.5)}gb"} - {"0gb"}
    taken = set().union(*facts["cores"]) if len(facts["cores"]) == 1 else set()
    return [facts["id"], facts["vendor"], facts["cores"], " ".join(sorted(words - taken))]


def build() -> Iterator[tuple[str, str]]:
    """Yield each data file and its text."""
    sources = json.loads((TOOLS / "accelerator_sources.json").read_text(encoding="utf-8"))
    lines = (TOOLS / "accelerator_facts.jsonl").read_text(encoding="utf-8").splitlines()
    devices = [json.loads(line) for line in lines]
    compact = {"ensure_ascii": False, "separators": (",", ":")}
    rows = (json.dumps({facts["id"]: row(facts, sources)}, **compact) for facts in devices)
    yield "accelerators.jsonl", "".join(f"{line}\n" for line in rows)
    index = ",\n".join(json.dumps(names(facts), **compact) for facts in devices)
    yield "accelerator_names.json", f"[\n{index}\n]\n"


def main() -> int:
    """Write the files, or with ``--check`` say whether they are as they would be written."""
    is_check = "--check" in sys.argv[1:]
    stale = []
    for name, text in build():
        if is_check:
            stale += [name] if (DATA / name).read_text(encoding="utf-8") != text else []
        else:
            (DATA / name).write_text(text, encoding="utf-8")
    for name in stale:
        print(f"{name} is not what the facts say: run python tools/accelerators.py")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
