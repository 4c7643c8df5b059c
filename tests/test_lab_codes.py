"""Codes of small floats, bit for bit against ml_dtypes; beyond the largest value they saturate."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

np = pytest.importorskip("numpy")
ml_dtypes = pytest.importorskip("ml_dtypes")

from kvgauge.lab.codes import E2M1, E4M3, E5M2, from_bf16, pack_pairs, to_bf16, unpack_pairs  # noqa: E402

OURS = {"float8_e4m3fn": E4M3, "float8_e5m2": E5M2, "float4_e2m1fn": E2M1}


def every_half() -> object:
    """Every finite float16: all magnitudes, and many ties of the coarser formats."""
    values = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
    return values[np.isfinite(values)]


def codes_of(values, name):
    return values.astype(getattr(ml_dtypes, name)).view(np.uint8)


@pytest.mark.parametrize("name", OURS)
def test_every_half_rounds_as_the_reference_does(name):
    ours, values = OURS[name], every_half()
    values = values[np.abs(values) <= ours.largest]
    assert np.array_equal(ours.encode(values), codes_of(values, name))


@pytest.mark.parametrize("name", OURS)
@given(st.lists(st.floats(-70_000, 70_000, width=32), min_size=1, max_size=50))
def test_any_float_rounds_as_the_reference_does(name, numbers):
    ours = OURS[name]
    values = np.clip(np.array(numbers, np.float32), -ours.largest, ours.largest)
    assert np.array_equal(ours.encode(values), codes_of(values, name))


@pytest.mark.parametrize("name", OURS)
def test_codes_decode_as_the_reference_does(name):
    ours = OURS[name]
    codes = np.arange(1 << ours.bits, dtype=np.uint8)
    theirs = codes.view(getattr(ml_dtypes, name)).astype(np.float32)
    assert np.array_equal(ours.decode(codes), theirs, equal_nan=True)


@pytest.mark.parametrize(
    ("name", "largest"), [("float8_e4m3fn", 448), ("float8_e5m2", 57_344), ("float4_e2m1fn", 6)]
)
def test_what_is_too_large_saturates(name, largest):
    ours = OURS[name]
    decoded = ours.decode(ours.encode(np.array([1e9, -1e9, np.inf, -np.inf], np.float32)))
    assert decoded.tolist() == [largest, -largest, largest, -largest]


def test_nan_and_the_sign_of_zero():
    assert E4M3.encode(np.array([np.nan, -0.0], np.float32)).tolist() == [0x7F, 0x80]
    assert np.isnan(E5M2.decode(E5M2.encode(np.array([np.nan], np.float32)))).all()
    with pytest.raises(ValueError, match="no NaN"):
        E2M1.encode(np.array([np.nan], np.float32))


@given(st.lists(st.floats(width=32), min_size=1, max_size=50))
def test_bfloat16_is_the_reference(numbers):
    values = np.array(numbers, np.float32)
    theirs = values.astype(ml_dtypes.bfloat16)
    mine = from_bf16(to_bf16(values))
    assert np.array_equal(mine, theirs.astype(np.float32), equal_nan=True)
    finite = np.isfinite(values)
    assert np.array_equal(to_bf16(values)[finite], theirs.view(np.uint16)[finite])


@given(st.lists(st.integers(0, 15), min_size=2, max_size=20).filter(lambda c: len(c) % 2 == 0))
def test_pairs_come_back(codes):
    packed = pack_pairs(np.array(codes, np.uint8))
    assert packed.nbytes == len(codes) // 2
    assert unpack_pairs(packed).tolist() == codes
