"""A run's folder: what was asked, what was measured, and how each metric went over time.

run.toml         the run file, as it was
results.json     machine, versions, settings, and each metric with its repeats (see `results`)
series.parquet   repeat, seconds since its beginning, metric, value: once a second
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bettong.lab.results import BenchmarkResults, MeasuredMetric, RunValue
from bettong.lab.run import Repeat
from bettong.lab.spec import RunSpec

RESULTS, SERIES, RUN_FILE = "results.json", "series.parquet", "run.toml"


def save(
    folder: Path, file: Path, spec: RunSpec, repeats: Sequence[Repeat], machine: dict[str, str], now: datetime
) -> Path:
    """Makes `<folder>/<time>-<name>` and writes all of it; returns its path."""
    slug = re.sub(r"[^a-z0-9]+", "-", spec.name.lower()).strip("-")
    made = folder / f"{now.astimezone(UTC):%Y-%m-%dT%H-%M-%SZ}-{slug}"
    made.mkdir(parents=True)
    shutil.copyfile(file, made / RUN_FILE)
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
    """The metrics of all repeats, each that the first one has."""
    measured = [
        MeasuredMetric(
            name=each.metric,
            unit=each.unit,
            runs=[
                RunValue(value=found.value, histogram=found.histogram)
                for repeat in repeats
                for found in repeat.measured
                if found.metric == each.metric
            ],
        )
        for each in repeats[0].measured
    ]
    asked: dict[str, str | int] = {"run": spec.name, "application": spec.application, "seed": spec.seed}
    asked |= {"schedule": str(spec.schedule), "partitions": spec.partitions, "compiled": str(spec.compiled)}
    if spec.faults:
        asked["faults"] = ", ".join(f"{each.label} at {each.at_s:g} s" for each in spec.planned_faults)
    asked.update(spec.settings)
    return BenchmarkResults(
        date=now.isoformat(timespec="seconds"),
        machine={**machine, **repeats[0].facts},
        asked=asked,
        measurements=measured,
    )
