"""The results of a measurement, as a file has them: what `bettong lab run`, `make bench` and its peers write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bettong.errors import LabError
from bettong.lab.statistics.comparison import MetricRuns

_BYTES_MAX = 64 << 20
_FAULTS_SHOWN = 3
# The names of facts that are others each time end so, and are no difference: the load, stolen time, hiccups.
BEFORE = " before"
COMMIT, COMMITTED = "commit", "commit time"


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class RunValue(_Table):
    """What one run gave. `histogram`: of all latencies, in ns; HDR's compressed encoding, in base64."""

    value: float
    histogram: str = ""


class MeasuredMetric(_Table):
    """A metric with each of its runs. `of_bar`: how much of what is wanted it reaches, where something is."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    unit: Annotated[str, Field(max_length=40)]
    of_bar: float | None = None
    runs: Annotated[list[RunValue], Field(min_length=1, max_length=10_000)]


class BenchmarkResults(_Table):
    """`machine`: what it was measured on. `asked`: with which settings."""

    date: str
    machine: dict[str, str]
    asked: dict[str, str | int]
    measurements: Annotated[list[MeasuredMetric], Field(min_length=1, max_length=10_000)]

    @property
    def order_key(self) -> tuple[str, str]:
        """Its position in a history: the time of its commit, or, where that is unknown, of the run; then of the run."""
        return self.machine.get(COMMITTED, self.date), self.date

    @property
    def metrics(self) -> list[MetricRuns]:
        """What can be compared."""
        return [
            MetricRuns(each.name, each.unit, tuple(run.value for run in each.runs))
            for each in self.measurements
        ]

    @property
    def latencies_ms(self) -> dict[str, list[float]]:
        """Each repeat of the metrics in ms."""
        return {
            each.name: [run.value for run in each.runs] for each in self.measurements if each.unit == "ms"
        }


def read(path: Path) -> BenchmarkResults:
    """A results file, or the newest in a folder of files or runs. Raises LabError that names it and what is wrong."""
    file = _newest(path) if path.is_dir() else path
    try:
        if file.stat().st_size > _BYTES_MAX:
            raise LabError(
                f"{file} is larger than {_BYTES_MAX >> 20} MB: these are no results of a benchmark"
            )
        return BenchmarkResults.model_validate_json(file.read_bytes())
    except OSError as error:
        raise LabError(f"{file} cannot be read: {error.strerror or error}") from None
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, fault['loc'])) or 'file'}: {fault['msg']}"
            for fault in error.errors()[:_FAULTS_SHOWN]
        )
        raise LabError(
            f"{file} holds no results: {faults}; expected what `bettong lab run` or `make bench` writes"
        ) from None


def read_all(folder: Path, run: str | None) -> list[BenchmarkResults]:
    """All results of the runs' folders below a folder, of one run. Raises LabError where there is none, or are several.

    `run`: the name of the run; None where the folder holds one alone.
    """
    found = [read(file) for file in sorted(folder.glob("*/results.json"))]
    names = sorted({str(each.asked.get("run", "")) for each in found})
    quoted = ", ".join(map(repr, names)) or "none"
    if run is None and len(names) > 1:
        raise LabError(f"{folder} holds the runs {quoted}: choose one by --run")
    chosen = [each for each in found if run is None or each.asked.get("run") == run]
    if not chosen:
        raise LabError(f"{folder} holds no results of {run or 'a run'}: there are {quoted}")
    return chosen


def asked_alike(results: Sequence[BenchmarkResults]) -> tuple[list[BenchmarkResults], list[str]]:
    """Those with the settings of the newest commit's; and of the others, which cannot be compared, how many and why."""
    newest = max(results, key=lambda each: each.order_key)
    others = Counter(
        "; ".join(_differing("settings", each.asked, newest.asked))
        for each in results
        if each.asked != newest.asked
    )
    return (
        [each for each in results if each.asked == newest.asked],
        [f"{count} left out, not run as the newest is: {why}" for why, count in others.items()],
    )


def differences(before: BenchmarkResults, after: BenchmarkResults) -> list[str]:
    """What was not the same: a change may come from these."""
    return [
        *_differing("machine", before.machine, after.machine),
        *_differing("settings", before.asked, after.asked),
    ]


def _differing(kind: str, before: Mapping[str, str | int], after: Mapping[str, str | int]) -> Iterator[str]:
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name, "unknown"), after.get(name, "unknown")
        if old != new and name != COMMITTED and not name.endswith(BEFORE):
            yield f"{kind}, {name}: {old} before, {new} after"


def shown(value: float) -> str:
    """A value for people: three digits, or all of a whole number."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _newest(folder: Path) -> Path:
    files = sorted(folder.glob("*.json")) or sorted(folder.glob("*/results.json"))
    if not files:
        raise LabError(f"{folder} holds no results (*.json): run `bettong lab run` or `make bench` first")
    return files[-1]
