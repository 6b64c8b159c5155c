"""A run's folder: what was asked, what was measured, and how each metric went over time.

run.toml         what ran, as a run file: `bettong lab run` takes it
results.json     machine, versions, settings, and each metric with its repeats (see `results`)
series.parquet   repeat, seconds since its beginning, metric, value: once a second
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bettong.config import toml_files
from bettong.lab.results import BenchmarkResults, MeasuredMetric, RunValue
from bettong.lab.run import Repeat
from bettong.lab.spec import RunSpec

RESULTS, SERIES, RUN_FILE = "results.json", "series.parquet", "run.toml"
# Of the table kubernetes: what decides how the release runs.
_WHERE = {"context", "values", "chart", "application"}


def save(
    folder: Path, spec: RunSpec, repeats: Sequence[Repeat], machine: dict[str, str], now: datetime
) -> Path:
    """Makes `<folder>/<time>-<name>` and writes all of it; returns its path."""
    slug = re.sub(r"[^a-z0-9]+", "-", spec.name.lower()).strip("-")
    made = folder / f"{now.astimezone(UTC):%Y-%m-%dT%H-%M-%SZ}-{slug}"
    made.mkdir(parents=True)
    ran = spec.model_copy(update={"repeats": len(repeats)})
    (made / RUN_FILE).write_text(toml_files.text_of(ran))
    (made / RESULTS).write_text(results(spec, repeats, machine, now).model_dump_json(indent=1) + "\n")
    rows = [
        (number, point.at_s, point.metric, point.value)
        for number, repeat in enumerate(repeats, 1)
        for point in repeat.series
    ]
    columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
    types = {"repeat": pa.int32(), "at_s": pa.float64(), "metric": pa.string(), "value": pa.float64()}
    table = pa.table(
        {name: pa.array(column, kind) for (name, kind), column in zip(types.items(), columns, strict=True)}
    )
    pq.write_table(table, made / SERIES)
    return made


def results(
    spec: RunSpec, repeats: Sequence[Repeat], machine: dict[str, str], now: datetime
) -> BenchmarkResults:
    """The metrics of all repeats, in the order in which they first come."""
    units: dict[str, str] = {}
    runs: dict[str, list[RunValue]] = defaultdict(list)
    for repeat in repeats:
        for each in repeat.measured:
            units.setdefault(each.metric, each.unit)
            runs[each.metric].append(RunValue(value=each.value, histogram=each.histogram))
    return BenchmarkResults(
        date=now.isoformat(timespec="seconds"),
        machine={**machine, **repeats[0].facts},
        asked=_asked(spec),
        measurements=[MeasuredMetric(name=name, unit=unit, runs=runs[name]) for name, unit in units.items()],
    )


def _asked(spec: RunSpec) -> dict[str, str | int]:
    """All that decides what is measured. Of a cluster, images are none of it: they are what is measured."""
    asked: dict[str, str | int] = {"run": spec.name, "application": spec.application}
    asked["load"] = spec.load if isinstance(spec.load, str) else toml_files.line_of(spec.load)
    if spec.messages is not None:
        asked["messages"] = spec.messages
    else:
        asked["steps"] = ", ".join(
            f"{step.messages_per_s:,.10g}/s for {step.seconds:.10g} s" for step in spec.steps
        )
        asked["warm_up_s"] = f"{spec.warm_up_s:.10g}"
    asked |= {"processes": spec.processes, "frame_messages": spec.frame_messages, "seed": spec.seed}
    asked |= {"schedule": str(spec.schedule), "partitions": spec.partitions, "compiled": str(spec.compiled)}
    if spec.faults:
        asked["faults"] = ", ".join(f"{each.label} at {each.at_s:g} s" for each in spec.planned_faults)
    if spec.kubernetes is not None:
        where = spec.kubernetes.model_dump(mode="json", include=_WHERE, exclude_none=True)
        asked["kubernetes"] = (
            ", ".join(f"{name} {value}" for name, value in where.items()) or "current context"
        )
    asked.update(spec.settings)
    return asked
