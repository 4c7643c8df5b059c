"""Weight files beside a config: which set is taken, what is said of it, local, cached and remote."""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import checkpoints as made
import kvgauge
from hub_server import COMMIT, File, HubServer
from kvgauge.architecture import Note
from kvgauge.errors import DamagedFileError, ModelNotFoundError
from kvgauge.file_weights import FileWeights, weights_from_files
from kvgauge.sources import load_raw
from kvgauge.sources.parallel import map_threads
from kvgauge.sources.transport import Limits, Site
from kvgauge.sources.weight_files import FoundWeights

TENSORS = made.tensors_of(made.LLAMA)
TOTAL = made.num_bytes(TENSORS)
WEIGHTS = made.weights_of(made.LLAMA)


def found_in(model: str | Path, **options: bool) -> FoundWeights | None:
    raw = load_raw(model, **options)
    return None if raw.weight_files is None else raw.weight_files.read()


def answered(found: FoundWeights | None) -> FileWeights:
    assert found is not None
    return weights_from_files(found, WEIGHTS, 3)


def codes(notes: tuple[Note, ...]) -> list[str]:
    return [note.code for note in notes]


def folder(tmp_path: Path, *files: dict[str, bytes]) -> Path:
    return made.write(tmp_path / "model", {k: v for each in files for k, v in each.items()}, made.LLAMA)


def check_headers(answer: FileWeights, *expected: str) -> None:
    assert answer.stored is not None
    assert answer.stored.source == "safetensors"
    assert answer.stored.num_bytes == TOTAL
    assert answer.stored.num_parameters == WEIGHTS.num_parameters
    assert codes(answer.notes) == list(expected)


# Local


SINGLE = {"model.safetensors": made.file_bytes(TENSORS)}
SPLIT = made.split_files(TENSORS, 3)
SPLIT_ALONE = {name: data for name, data in SPLIT.items() if not name.endswith(".json")}
NAMED = {"mistral.safetensors": made.file_bytes(TENSORS)}
CONSOLIDATED = {"consolidated.safetensors": made.file_bytes(TENSORS)}
CONSOLIDATED_SPLIT = made.split_files(TENSORS, 2, "consolidated")
OTHERS = {
    "adapter_model.safetensors": b"", "diffusion_pytorch_model.safetensors": b"", "optimizer.bin": b"",
    "training_args.bin": b"", "tokenizer.json": b"{}", "generation_config.json": b"{}",
}  # fmt: skip


@pytest.mark.parametrize(
    ("files", "notes"),
    [
        ((SINGLE,), []),
        ((SPLIT,), []),
        ((SPLIT_ALONE,), []),
        ((NAMED,), []),
        ((CONSOLIDATED,), []),
        ((CONSOLIDATED_SPLIT,), []),
        ((SINGLE, OTHERS), []),
        ((SPLIT, CONSOLIDATED), ["weights_duplicate_files"]),
        ((SPLIT, CONSOLIDATED_SPLIT), ["weights_duplicate_files"]),
        ((SPLIT_ALONE, CONSOLIDATED_SPLIT), ["weights_duplicate_files"]),
        ((SPLIT, SINGLE), ["weights_duplicate_files"]),
        ((SPLIT, {"model.fp16.safetensors": b""}), ["weights_duplicate_files"]),
        ((SPLIT, {"pytorch_model-00001-of-00002.bin": b"x"}), ["weights_duplicate_files"]),
        ((SPLIT, {"extra.safetensors": b""}), ["weights_files_not_counted"]),
        ((SPLIT, {"model-visual.safetensors": b""}), ["weights_files_not_counted"]),
        ((SPLIT, {"model-00001-of-00009.safetensors": b""}), ["weights_duplicate_files"]),
    ],
)
def test_one_set_of_a_folder_is_read(tmp_path, files, notes):
    check_headers(answered(found_in(folder(tmp_path, *files))), *notes)


def test_files_under_names_of_their_own_are_taken_together(tmp_path):
    names = list(TENSORS)
    halves = {
        "part_a.safetensors": made.file_bytes({name: TENSORS[name] for name in names[::2]}),
        "part_b.safetensors": made.file_bytes({name: TENSORS[name] for name in names[1::2]}),
    }
    check_headers(answered(found_in(folder(tmp_path, halves))))
    answer = answered(
        found_in(
            made.write(tmp_path / "twice", {**NAMED, "b.safetensors": made.file_bytes(TENSORS)}, made.LLAMA)
        )
    )
    assert (answer.stored, codes(answer.notes)) == (None, ["weights_headers_unread"])
    assert "both hold" in answer.notes[0].message


def test_no_weights_beside_a_config(tmp_path):
    assert found_in(folder(tmp_path, OTHERS)) is None
    assert load_raw(made.LLAMA).weight_files is None
    assert load_raw("Qwen/Qwen3-8B").weight_files is None
    other = tmp_path / "model" / "qwen.json"
    other.write_text(json.dumps(made.LLAMA))
    assert load_raw(other).weight_files is None  # who knows whose weights lie beside it


@pytest.mark.parametrize("name", ["adapter_model.safetensors", "diffusion_pytorch_model.safetensors"])
def test_an_adapter_is_not_answered_with_the_model_beside_it(tmp_path, name):
    model = folder(tmp_path, SINGLE, OTHERS)
    with pytest.raises(ModelNotFoundError, match="holds no language model") as caught:
        load_raw(model / name)
    assert "its folder" in caught.value.hint


def test_a_gguf_beside_a_config_is_said_to_be_left_out(tmp_path):
    model = folder(tmp_path, {"model-Q4_K_M.gguf": b"GGUF", "model-Q8_0.gguf": b"GGUF"})
    result = kvgauge.size(model, context=64)
    assert result.weights.stored.source == "config"
    said = [dict(note.values)["files"] for note in result.notes if note.code == "weights_files_not_counted"]
    assert said == ["model-Q4_K_M.gguf, model-Q8_0.gguf"]
    both = folder(tmp_path / "both", SINGLE, {"model-Q8_0.gguf": b"GGUF"})
    assert "weights_files_not_counted" not in codes(kvgauge.size(both, context=64).notes)


@pytest.mark.parametrize("name", ["model.safetensors.index.json", "model-00002-of-00003.safetensors"])
def test_a_file_of_the_set_is_named(tmp_path, name):
    model = folder(tmp_path, SPLIT, SINGLE)
    raw = load_raw(model / name)
    assert (raw.id, raw.source, raw.config) == (str(model / name), "file", made.LLAMA)
    check_headers(answered(raw.weight_files.read()), "weights_duplicate_files")
    check_headers(answered(found_in(model / "config.json")), "weights_duplicate_files")


def test_the_named_set_is_read_where_there_are_several(tmp_path):
    half = dict(list(TENSORS.items())[:5])
    model = folder(tmp_path, SINGLE, {"consolidated.safetensors": made.file_bytes(half)})
    found = found_in(model / "consolidated.safetensors")
    assert (found.total_bytes, found.duplicates) == (made.num_bytes(half), ("model.safetensors",))


def test_a_named_file_without_a_config(tmp_path):
    path = made.write(tmp_path, SINGLE) / "model.safetensors"
    with pytest.raises(ModelNotFoundError, match=r"no config\.json beside model\.safetensors"):
        load_raw(path)


def test_an_index_without_its_files(tmp_path):
    index = {name: data for name, data in SPLIT.items() if name.endswith(".json")}
    answer = answered(found_in(folder(tmp_path, index)))
    assert answer.stored.source == "index"
    assert (answer.stored.num_bytes, answer.stored.num_parameters) == (TOTAL, WEIGHTS.num_parameters)
    assert codes(answer.notes) == ["weights_files_missing", "weights_index_total"]


def test_a_download_that_is_not_done(tmp_path):
    model = folder(tmp_path, SPLIT)
    (model / "model-00002-of-00003.safetensors").unlink()
    answer = answered(found_in(model))
    assert (answer.stored.source, answer.stored.num_bytes) == ("index", TOTAL)
    assert answer.notes[0].code == "weights_files_missing"
    assert answer.notes[0].level == "warning"
    assert "model-00002-of-00003" in answer.notes[0].message
    (model / "model.safetensors.index.json").unlink()
    answer = answered(found_in(model))
    assert (answer.stored, codes(answer.notes)) == (None, ["weights_files_missing"])
    assert "1 of 3 files" in answer.notes[0].message


def test_pointers_of_git_lfs_are_no_files(tmp_path):
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 999\n"
    pointers = dict.fromkeys(SPLIT_ALONE, pointer)
    answer = answered(found_in(folder(tmp_path, SPLIT, pointers)))
    assert codes(answer.notes) == ["weights_files_missing", "weights_index_total"]
    assert found_in(made.write(tmp_path / "single", {"model.safetensors": pointer}, made.LLAMA)) is None


def test_pickled_files_are_a_total(tmp_path):
    index = {"metadata": {"total_size": 1234.0}, "weight_map": {"a": "pytorch_model-00001-of-00001.bin"}}
    answer = answered(
        found_in(folder(tmp_path, {"pytorch_model.bin.index.json": json.dumps(index).encode()}))
    )
    assert (answer.stored.num_bytes, codes(answer.notes)) == (1234, ["weights_bin_total"])
    files = {"pytorch_model-00001-of-00002.bin": b"x" * 70, "pytorch_model-00002-of-00002.bin": b"x" * 30}
    answer = answered(found_in(made.write(tmp_path / "b", files, made.LLAMA)))
    assert (answer.stored.num_bytes, codes(answer.notes)) == (100, ["weights_bin_total"])
    answer = answered(found_in(made.write(tmp_path / "c", {"consolidated.00.pth": b"x" * 7}, made.LLAMA)))
    assert answer.stored.num_bytes == 7


DAMAGED = {
    "cut off": SINGLE["model.safetensors"][:-1],
    "empty": b"",
    "no JSON": b"\x05\0\0\0\0\0\0\0hello",
    "a header that lies": (1 << 60).to_bytes(8, "little") + b"{}",
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_damaged_headers(tmp_path, data):
    model = folder(tmp_path, {"model.safetensors": data})
    answer = answered(found_in(model))
    assert (answer.stored, codes(answer.notes)) == (None, ["weights_headers_unread"])
    assert answer.notes[0].level == "warning"
    with pytest.raises(DamagedFileError, match=r"model\.safetensors"):
        found_in(model / "model.safetensors")


def test_a_damaged_file_of_a_set_leaves_the_total_of_its_index(tmp_path):
    model = folder(tmp_path, SPLIT, {"model-00003-of-00003.safetensors": b"12345678"})
    answer = answered(found_in(model))
    assert (answer.stored.source, answer.stored.num_bytes) == ("index", TOTAL)
    assert codes(answer.notes) == ["weights_index_total", "weights_headers_unread"]
    with pytest.raises(DamagedFileError):
        found_in(model / "model.safetensors.index.json")


@pytest.mark.parametrize("index", [b"", b"[]", b"{}", b'{"weight_map": {"a": "../../x.safetensors"}}'])
def test_a_damaged_index(tmp_path, index):
    answer = answered(found_in(folder(tmp_path, {"model.safetensors.index.json": index})))
    assert (answer.stored, codes(answer.notes)) == (None, ["weights_headers_unread"])


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path):
    model = folder(tmp_path, SINGLE)
    (model / "model.safetensors").chmod(0)
    assert codes(answered(found_in(model)).notes) == ["weights_headers_unread"]


def test_files_that_the_formats_own_library_writes(tmp_path):
    numpy = pytest.importorskip("numpy")
    official = pytest.importorskip("safetensors.numpy")
    arrays = {name: numpy.zeros(shape, "float16") for name, (_, shape) in TENSORS.items()}
    model = folder(tmp_path)
    official.save_file(arrays, model / "model.safetensors")
    answer = answered(found_in(model))
    check_headers(answer)
    assert answer.stored.scheme == "f16"


def test_progress_is_told(tmp_path):
    told: list[tuple[int, int]] = []
    load_raw(folder(tmp_path, SPLIT)).weight_files.read(lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]


NAMES = (
    "model.safetensors",
    "model.safetensors.index.json",
    "model-00001-of-00001.safetensors",
    "a.safetensors",
)
HEADER = made.file_bytes(dict(list(TENSORS.items())[:3]), data=False)


@given(
    st.dictionaries(st.sampled_from(NAMES), st.one_of(st.binary(max_size=60), st.just(SINGLE[NAMES[0]]))),
    st.lists(st.tuples(st.integers(0, len(HEADER) - 1), st.integers(0, 255)), max_size=3),
)
def test_any_files_are_answered(files, changes):
    """Arbitrary bytes, and headers with bytes changed: a note or an answer, never anything else."""
    changed = bytearray(HEADER)
    for at, byte in changes:
        changed[at] = byte
    with tempfile.TemporaryDirectory() as place:
        made.write(Path(place), {"b.safetensors": bytes(changed), **files}, made.LLAMA)
        found = found_in(place)
        assert found is not None
        answer = answered(found)
        assert answer.stored is not None or answer.notes


# The local cache of the hub


@pytest.fixture
def cache(tmp_path, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub" / "models--org--tiny"


def snapshot(cache: Path, files: dict[str, bytes]) -> None:
    """Lay files out as the hub's library does: links to blobs."""
    place = cache / "snapshots" / COMMIT
    place.mkdir(parents=True)
    (cache / "blobs").mkdir()
    (cache / "refs").mkdir()
    (cache / "refs" / "main").write_text(COMMIT)
    for number, (name, data) in enumerate(files.items()):
        (cache / "blobs" / f"{number:040}").write_bytes(data)
        (place / name).symlink_to(Path("../../blobs") / f"{number:040}")


def test_a_snapshot_of_links(cache):
    snapshot(cache, {"config.json": json.dumps(made.LLAMA).encode(), **SPLIT})
    check_headers(answered(found_in("org/tiny", offline=True)))
    check_headers(answered(found_in(cache / "snapshots" / COMMIT)))
    (cache / "blobs" / f"{1:040}").unlink()  # a broken link
    answer = answered(found_in("org/tiny", offline=True))
    assert codes(answer.notes) == ["weights_files_missing", "weights_index_total"]


def test_a_cached_config_alone_offline(cache):
    snapshot(cache, {"config.json": json.dumps(made.LLAMA).encode()})
    assert found_in("org/tiny", offline=True) is None


# On a hub


@pytest.fixture
def server():
    found = HubServer()
    yield found
    found.close()


@pytest.fixture
def hub(server, cache, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", server.url)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    return server


@pytest.fixture
def impatient(monkeypatch):
    """What never comes is not waited for long."""
    monkeypatch.setattr("kvgauge.sources.hub._limits", lambda: Limits(step_s=1.0, total_s=2.0))


def linked(files: dict[str, bytes]) -> dict[str, File]:
    return {name: File(data, linked=name.endswith(".safetensors")) for name, data in files.items()}


def add(server: HubServer, *files: dict[str, bytes]) -> None:
    given = {k: v for each in files for k, v in each.items()}
    server.add("org/tiny", {"config.json": made.LLAMA, **linked(given)})


def test_headers_on_the_hub(hub):
    files = made.split_files(TENSORS, 20)
    add(hub, files, CONSOLIDATED)
    raw = load_raw("org/tiny")
    before = len(hub.requests)
    told: list[int] = []
    answer = answered(raw.weight_files.read(lambda done, _: told.append(done)))
    check_headers(answer, "weights_duplicate_files")
    assert told == list(range(1, 21))
    # The list of files, the index, and for each file an answer of the hub and one of its storage.
    assert len(hub.requests) - before == 2 + 2 * 20
    assert all(COMMIT in path for _, path, _ in hub.requests[before:] if path.startswith("/org"))


def test_the_storage_is_asked_for_several_files_at_once(hub, monkeypatch):
    from kvgauge.sources import weight_files

    add(hub, made.split_files(TENSORS, 20))
    raw = load_raw("org/tiny")
    busy, most, lock = 0, 0, threading.Lock()
    ask = Site.ask

    def slow(site: Site, url: str, **options: object) -> object:
        nonlocal busy, most
        with lock:
            busy, most = busy + 1, max(most, busy + 1)
        try:
            time.sleep(0.02)
            return ask(site, url, **options)
        finally:
            with lock:
                busy -= 1

    monkeypatch.setattr(Site, "ask", slow)
    check_headers(answered(raw.weight_files.read()))
    assert 2 <= most <= weight_files.NUM_THREADS


def test_a_cached_config_asks_for_headers_unless_offline(hub):
    add(hub, SPLIT)
    load_raw("org/tiny")
    before = len(hub.requests)
    assert found_in("org/tiny", offline=True) is None
    assert len(hub.requests) == before
    check_headers(answered(found_in("org/tiny")))
    assert len(hub.requests) == before + 8


def test_what_the_hub_said_is_kept(hub, cache):
    """Asked once for a commit: the next answer is the same and needs no network."""
    add(hub, SPLIT, CONSOLIDATED)
    first = answered(found_in("org/tiny"))
    before = len(hub.requests)
    assert answered(found_in("org/tiny")) == first
    assert answered(found_in("org/tiny", offline=True)) == first
    assert len(hub.requests) == before
    assert answered(found_in("org/tiny", refresh=True)) == first
    assert len(hub.requests) > before + 8
    from huggingface_hub import scan_cache_dir

    scanned = scan_cache_dir(cache.parent)
    assert not scanned.warnings
    assert [repo.repo_id for repo in scanned.repos] == ["org/tiny"]


def test_that_there_is_nothing_is_kept_and_a_failure_is_not(hub):
    add(hub)
    assert found_in("org/tiny") is None
    before = len(hub.requests)
    assert found_in("org/tiny") is None
    assert len(hub.requests) == before
    add(hub, SPLIT)
    hub.repos["org/tiny"].revisions = {"main": "a" * 40}
    hub.faults["storage"] = "500"
    assert found_in("org/tiny", refresh=True).failure
    hub.faults.clear()
    check_headers(answered(found_in("org/tiny")))


@pytest.mark.parametrize(
    "data",
    [b"", b"x" * 50, *(zlib.compress(json.dumps(value).encode()) for value in (
        7, [], [1], [2, None], [1, 7], [1, {}], [1, {"kind": "unread", "total_bytes": 1}],
        [1, {"kind": "safetensors", "total_bytes": 1, "files": [], "missing": [], "duplicates": [],
             "beside": [], "tensors": [["a", "BF16", [-1]]]}],
        [1, {"kind": "safetensors", "total_bytes": 1, "files": [], "missing": [], "duplicates": [],
             "beside": [], "tensors": [["a", "Q4", [1]]]}],
        [1, {"kind": "safetensors", "total_bytes": 1, "files": [], "missing": [], "duplicates": [],
             "beside": [], "tensors": [["a"]]}],
    ))],
)  # fmt: skip
def test_what_was_kept_is_damaged(hub, cache, data):
    add(hub, SPLIT)
    check_headers(answered(found_in("org/tiny")))
    (kept,) = (cache / ".kvgauge").iterdir()
    kept.write_bytes(data)
    check_headers(answered(found_in("org/tiny")))


@pytest.mark.parametrize(
    ("fault", "said"),
    [("500", "fails"), ("reset", "cut"), ("slow", "within"), ("drip", "in time"),
     ("shifted", "bytes"), ("403", "read"), ("404", "")],
)  # fmt: skip
def test_headers_that_can_not_be_had_leave_the_total_of_the_index(hub, impatient, fault, said):
    add(hub, SPLIT)
    raw = load_raw("org/tiny")
    hub.faults["storage"] = fault
    begin = time.monotonic()
    answer = answered(raw.weight_files.read())
    assert time.monotonic() - begin < 10
    assert (answer.stored.source, answer.stored.num_bytes) == ("index", TOTAL)
    assert codes(answer.notes) == ["weights_index_total", "weights_headers_unread"]
    assert said in answer.notes[1].message


def test_nothing_can_be_had(hub):
    add(hub, SPLIT)
    raw = load_raw("org/tiny")
    hub.faults["/"] = "500"
    answer = answered(raw.weight_files.read())
    assert (answer.stored, codes(answer.notes)) == (None, ["weights_headers_unread"])


def test_a_mirror_without_a_list_of_files(hub):
    for files, requests in ((SPLIT, 4 + 2 * 3), (SINGLE, 3 + 2)):
        add(hub, files)
        raw = load_raw("org/tiny", refresh=True)
        hub.faults["/api/models"] = "404"
        before = len(hub.requests)
        check_headers(answered(raw.weight_files.read()))
        assert len(hub.requests) - before <= requests
        hub.faults.clear()


def test_pickled_files_on_the_hub(hub):
    add(hub, {"pytorch_model.bin": b"x" * 50})
    answer = answered(found_in("org/tiny"))
    assert (answer.stored.num_bytes, codes(answer.notes)) == (50, ["weights_bin_total"])


def test_a_repository_without_weights(hub):
    add(hub)
    assert found_in("org/tiny") is None


def test_hostile_files_on_the_hub(hub):
    add(hub, SPLIT, {"model-00001-of-00003.safetensors": (1 << 60).to_bytes(8, "little")})
    answer = answered(found_in("org/tiny"))
    assert codes(answer.notes) == ["weights_index_total", "weights_headers_unread"]
    assert "claims a header" in answer.notes[1].message


def test_modelscope(server, monkeypatch):
    monkeypatch.setenv("MODELSCOPE_ENDPOINT", server.url)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    add(server, SPLIT)
    check_headers(answered(found_in("ms:org/tiny")))


# Threads


def test_the_first_failure_ends_it():
    started: list[int] = []

    def work(number: int) -> int:
        started.append(number)
        if number == 3:
            raise KeyError(number)
        time.sleep(0.01)
        return number

    with pytest.raises(KeyError):
        map_threads(work, range(1000), num_threads=4, within_s=10)
    assert len(started) < 100
    assert map_threads(lambda n: n * 2, range(50), num_threads=8, within_s=10) == [n * 2 for n in range(50)]


def test_time_runs_out():
    begin = time.monotonic()
    for num_threads in (1, 4):
        with pytest.raises(TimeoutError):
            map_threads(lambda _: time.sleep(0.05), range(100), num_threads=num_threads, within_s=0.1)
    assert time.monotonic() - begin < 2
