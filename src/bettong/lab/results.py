"""The results of a measurement, as files that `bettong lab run`, `make bench` and its peers write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bettong.errors import LabError
from bettong.lab.spec import Objective
from bettong.lab.statistics.comparison import MetricRuns, is_detail

_BYTES_MAX = 64 << 20
_FAULTS_SHOWN = 3
# Facts with names that end so vary from run to run, and count as no difference: the load, stolen time, hiccups.
BEFORE = " before"
COMMIT, COMMITTED = "commit", "commit time"
# The facts of a machine that results of one history share.
_HARDWARE = frozenset({"processor", "cores", "memory", "nodes"})


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class RunValue(_Table):
    """The value of one run. `histogram`: all latencies in ns; HDR's compressed encoding, in base64."""

    value: float
    histogram: str = ""


class MeasuredMetric(_Table):
    """A metric with its value in each run. `of_bar`: its ratio to the wanted value, if there is one."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    unit: Annotated[str, Field(max_length=40)]
    of_bar: float | None = None
    runs: Annotated[list[RunValue], Field(min_length=1, max_length=10_000)]


class BenchmarkResults(_Table):
    """Results of one measurement. `machine`: facts of where it ran. `asked`: its settings, without the objective.

    `judged_steps`: the names of the steps that the objective is about; empty if an older version wrote the results.
    """

    date: str
    machine: dict[str, str]
    asked: dict[str, str | int]
    objective: Objective = Objective()
    judged_steps: list[str] = []
    measurements: Annotated[list[MeasuredMetric], Field(min_length=1, max_length=10_000)]

    @property
    def order_key(self) -> tuple[str, str]:
        """Orders a history: by the time of the commit, or if unknown of the run; then by that of the run."""
        return self.machine.get(COMMITTED, self.date), self.date

    @property
    def metrics(self) -> list[MetricRuns]:
        """All metrics, to be compared."""
        return [
            MetricRuns(each.name, each.unit, tuple(run.value for run in each.runs))
            for each in self.measurements
        ]

    @property
    def latencies_ms(self) -> dict[str, list[float]]:
        """The metrics in ms, each with its values of all repeats."""
        return {
            each.name: [run.value for run in each.runs] for each in self.measurements if each.unit == "ms"
        }


def read(path: Path) -> BenchmarkResults:
    """Reads `results_file(path)`. Raises LabError that names file and fault."""
    file = results_file(path)
    try:
        if file.stat().st_size > _BYTES_MAX:
            raise LabError(
                f"{file} is larger than {_BYTES_MAX >> 20} MB, so it is no results file of a benchmark"
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


def results_file(path: Path) -> Path:
    """The path itself; of a folder of files or runs, its newest results file. Raises LabError if it has none."""
    if not path.is_dir():
        return path
    files = sorted(path.glob("*.json")) or sorted(path.glob("*/results.json"))
    if not files:
        raise LabError(f"{path} holds no results (*.json): run `bettong lab run` or `make bench` first")
    return files[-1]


def read_all(folder: Path, run: str | None) -> list[BenchmarkResults]:
    """The results of one run in the run folders of a folder. Raises LabError if there are none, or several runs.

    `run`: the name of the run; None if the folder holds only one.
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
    """The results with the settings and on the hardware of the newest commit's.

    And how many others cannot be compared, and why.
    """
    newest = max(results, key=lambda each: each.order_key)
    alike, others = [], Counter[str]()
    for each in results:
        asked = _differing("settings", each.asked, newest.asked)
        measured_on = _differing("machine", _hardware(each), _hardware(newest))
        if why := "; ".join([*asked, *measured_on]):
            others[why] += 1
        else:
            alike.append(each)
    return alike, [f"{count} left out, unlike the newest: {why}" for why, count in others.items()]


def _hardware(results: BenchmarkResults) -> dict[str, str]:
    return {name: value for name, value in results.machine.items() if name in _HARDWARE}


def differences(before: BenchmarkResults, after: BenchmarkResults) -> list[str]:
    """How machine and settings differ, because a change may come from these; and metrics that only one has."""
    return [
        *_only("before", before, after),
        *_only("after", after, before),
        *_differing("machine", before.machine, after.machine),
        *_differing("settings", before.asked, after.asked),
    ]


def _only(when: str, one: BenchmarkResults, other: BenchmarkResults) -> Iterator[str]:
    names = {each.name for each in other.measurements}
    missing = [each.name for each in one.measurements if each.name not in names]
    details = sum(map(is_detail, missing))
    said = [each for each in missing if not is_detail(each)] + [f"{details} of the details"] * bool(details)
    if said:
        yield f"metrics, measured only {when}: {'; '.join(said)}"


def _differing(kind: str, before: Mapping[str, str | int], after: Mapping[str, str | int]) -> Iterator[str]:
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name, "unknown"), after.get(name, "unknown")
        if old != new and name != COMMITTED and not name.endswith(BEFORE):
            yield f"{kind}, {name}: {old} before, {new} after"
