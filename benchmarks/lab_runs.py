"""Run files of the lab as measurements: the whole suite's speed, and how late its results are."""

from pathlib import Path

from benchmarks.measuring import Sample
from benchmarks.waits import PERCENTILES
from bettong.config.processor import Schedule
from bettong.lab.measures import Measured
from bettong.lab.run import once
from bettong.lab.spec import RunSpec, read

_FOLDER = Path(__file__).with_name("lab")
_ALL = "all"
_CPU, _CPU_END = "CPU of ", ", a million messages"


def suite_speed(messages: int, *, schedule: Schedule, compiled: bool, partitions: int) -> Sample:
    """Messages a second of one run, from the first one after the initial quotes until a subscriber has all results."""
    spec = _spec("market_spread.toml", schedule, partitions)
    measured = once(spec.model_copy(update={"messages": messages, "compiled": compiled})).measured
    cpu_s = {
        each.metric.removeprefix(_CPU).removesuffix(_CPU_END): each.value
        for each in measured
        if each.metric.startswith(_CPU)
    }
    return Sample(_one(measured, "throughput").value, cpu_s.pop(_ALL), cpu_s)


def suite_latency(*, schedule: Schedule, partitions: int) -> list[Sample]:
    """One run: how late results were at PERCENTILES, in ms, from a client's due time to a subscriber."""
    measured = once(_spec("market_spread_steady.toml", schedule, partitions)).measured
    found = [_one(measured, f"p{each:g}") for each in PERCENTILES]
    histogram = next(each.histogram for each in measured if each.histogram)
    return [Sample(each.value, histogram=histogram) for each in found]


def _spec(file: str, schedule: Schedule, partitions: int) -> RunSpec:
    return read(_FOLDER / file).model_copy(update={"schedule": schedule, "partitions": partitions})


def _one(measured: list[Measured], end: str) -> Measured:
    return next(each for each in measured if each.metric.rpartition(", ")[2] == end)
