"""Celsius to Fahrenheit in single precision: each step rounds as a float32 unit does, whatever runs it.

    bettong up examples/celsius.py
    bettong send celsius examples/data/celsius/celsius.jsonl
    bettong tail fahrenheit

A field of `f32` holds 32 bits, and is a Python float, of 64, when a function reads it: to compute with those and round
once at the end gives another last bit now and then. So each operand is made a `numpy.float32`. The line that does it
runs in all three execution modes, for `numpy.float32` makes one number of a number, and a column of a column.
"""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

import bettong
from bettong import Width, f32

FACTOR = np.float32(1.8)
OFFSET = np.float32(32)


@dataclass(slots=True)
class Celsius:
    """What a sensor measured."""

    sensor: Annotated[str, Width(8)]
    degrees: f32


@dataclass(slots=True)
class Fahrenheit:
    """The same in Fahrenheit."""

    sensor: Annotated[str, Width(8)]
    degrees: f32


@bettong.compiled
def to_fahrenheit(celsius: Celsius) -> Fahrenheit:
    """Two operations of 32 bits. Marked `@bettong.vectorized`, or not at all, it gives the same bits."""
    degrees: Any = np.float32(celsius.degrees)
    return Fahrenheit(celsius.sensor, degrees * FACTOR + OFFSET)


app = bettong.Application("celsius")
app.source("celsius", schema=Celsius, key="sensor").map(to_fahrenheit).sink("fahrenheit")
