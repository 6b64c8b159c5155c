"""`examples/celsius.py`: every bit is that of float32 arithmetic, in each execution mode."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import bettong
from bettong.testing import run
from examples import celsius
from examples.celsius import Celsius, Fahrenheit
from tests.samples.example_answers import single

# Each of the first 16 bits of a float32 (sign, exponent, the first 7 bits of the significand) with each of these.
HIGH = np.arange(2**16, dtype=np.uint32) << 16
LOW = (0x0000, 0x0001, 0x5A5A, 0x8000, 0xFFFF)
QUIET_NAN = np.uint32(0x7FC00000)


def of_mode(mark: Callable[[Any], Any] | None) -> bettong.Application:
    """The example with the same function, marked otherwise."""
    code = celsius.to_fahrenheit
    assert isinstance(code, FunctionType)
    function = FunctionType(code.__code__, code.__globals__, code.__name__)
    function.__annotations__ = dict(code.__annotations__)
    app = bettong.Application("celsius")
    source = app.source("celsius", schema=Celsius, key="sensor")
    source.map(mark(function) if mark is not None else function).sink("fahrenheit")
    return app


def bits_of(results: list[Fahrenheit]) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """Of the degrees, of NaN only that it is one: which one is not said by IEEE 754."""
    degrees = np.array([each.degrees for each in results], np.float32)
    assert (degrees.astype(np.float64) == [each.degrees for each in results])[~np.isnan(degrees)].all()
    return np.where(np.isnan(degrees), QUIET_NAN, degrees.view(np.uint32))


@pytest.mark.filterwarnings(
    "ignore:overflow encountered:RuntimeWarning"
)  # Python's numpy warns of infinities
@pytest.mark.parametrize("low", LOW)
@pytest.mark.parametrize("mark", [None, bettong.compiled, bettong.vectorized])
def test_every_bit_is_that_of_float32(mark: Callable[[Any], Any] | None, low: int) -> None:
    degrees = (HIGH | np.uint32(low)).view(np.float32)
    messages = [Celsius("s", float(each)) for each in degrees]
    outcome = run(of_mode(mark), [("celsius", messages)], compiled=True)
    assert outcome.dead_letters == []
    with np.errstate(all="ignore"):
        expected = degrees * np.float32(1.8) + np.float32(32)
    assert expected.dtype == np.float32
    expected_bits = np.where(np.isnan(expected), QUIET_NAN, expected.view(np.uint32))
    assert (bits_of(outcome.outputs["fahrenheit"]) == expected_bits).all()


def test_the_reference_is_the_nearest_float32_of_each_exact_step() -> None:
    """Numpy against the fractions that golden results are made of; subnormals are among them."""
    chance = np.random.default_rng(20_261_126)
    bits = chance.integers(0, 2**32, 20_000, np.uint32)
    bits[:2_000] &= np.uint32(0x807FFFFF)  # subnormals
    degrees = bits.view(np.float32)
    factor = single(Fraction("1.8"))
    with np.errstate(all="ignore"):
        products, sums = degrees * np.float32(1.8), degrees * np.float32(1.8) + np.float32(32)
    compared = 0
    for value, product, total in zip(degrees.tolist(), products.tolist(), sums.tolist(), strict=True):
        if np.isfinite(value) and np.isfinite(product):
            exact = single(Fraction(value) * factor)
            assert (float(exact), float(single(exact + 32))) == (product, total), value
            compared += 1
    assert compared > 15_000


def test_one_rounding_at_the_end_would_give_other_bits() -> None:
    """So the example is not right by chance."""
    degrees = (HIGH | np.uint32(0x5A5A)).view(np.float32)
    with np.errstate(all="ignore"):
        once = (degrees.astype(np.float64) * 1.8 + 32).astype(np.float32)
        stepwise = degrees * np.float32(1.8) + np.float32(32)
    assert np.count_nonzero((once != stepwise) & np.isfinite(once) & np.isfinite(stepwise)) > 1_000
