"""A run's folder: the run file, the metrics of each repeat, also over time.

run.toml         what ran, as a run file for `bettong lab run`
results.json     machine, versions, settings, and each metric with its repeats (see `results`)
series.parquet   repeat, seconds since its beginning, metric, value: once a second
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryFile

import pyarrow as pa
import pyarrow.parquet as pq

from bettong.config import toml_files
from bettong.errors import LabError
from bettong.lab.results import BenchmarkResults, MeasuredMetric, RunValue, read
from bettong.lab.run import Repeat
from bettong.lab.spec import RunSpec

RESULTS, SERIES, RUN_FILE = "results.json", "series.parquet", "run.toml"
_REPEAT = "repeat"
_REPEATS = re.compile(r"^repeats = \d+$", re.MULTILINE)
# Fields of the table kubernetes that decide how the release runs.
_CLUSTER_FIELDS = {"context", "values", "chart", "application"}


def check_writable(folder: Path) -> None:
    """Raises LabError if runs cannot be saved there: to be called before hours of measurements. Creates nothing."""
    existing = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    try:
        with TemporaryFile(dir=existing):
            pass
    except OSError as error:
        raise unwritable(folder, error) from None


def unwritable(path: Path, error: OSError) -> LabError:
    """The error of a folder or a page that cannot be written."""
    return LabError(f"{path} cannot be written: {error.strerror or error}; choose another place by --out")


def save(folder: Path, spec: RunSpec, repeats: Sequence[Repeat], measured: BenchmarkResults) -> Path:
    """Creates `<folder>/<time>-<name>` and writes the run's files into it; returns its path.

    `measured`: what `results` returned for these repeats. Raises LabError if they cannot be written; then nothing is
    left of them, because part of a file would be in the way of `bettong lab history`.
    """
    time = datetime.fromisoformat(measured.date).astimezone(UTC)
    made = _unused(folder / f"{time:%Y-%m-%dT%H-%M-%SZ}-{_slug(spec.name)}")
    try:
        _write(made, spec, repeats, measured)
    except OSError as error:
        rmtree(made, ignore_errors=True)
        raise unwritable(folder, error) from None
    return made


def _unused(wanted: Path) -> Path:
    """The path, with a number behind it if there is such a folder: names of runs may differ in signs only."""
    numbered = (wanted.with_name(f"{wanted.name}-{number}") for number in count(2))
    return next(each for each in chain([wanted], numbered) if not each.exists())


def _write(made: Path, spec: RunSpec, repeats: Sequence[Repeat], measured: BenchmarkResults) -> None:
    made.mkdir(parents=True)
    ran = spec.model_copy(update={"repeats": len(repeats)})
    (made / RUN_FILE).write_text(toml_files.text_of(ran))
    (made / RESULTS).write_text(measured.model_dump_json(indent=1) + "\n")
    rows = [
        (number, point.at_s, point.metric, point.value)
        for number, repeat in enumerate(repeats, 1)
        for point in repeat.series
    ]
    columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
    types = {_REPEAT: pa.int32(), "at_s": pa.float64(), "metric": pa.string(), "value": pa.float64()}
    table = pa.table(
        {name: pa.array(column, kind) for (name, kind), column in zip(types.items(), columns, strict=True)}
    )
    pq.write_table(table, made / SERIES)


def results(
    spec: RunSpec, repeats: Sequence[Repeat], machine: dict[str, str], now: datetime
) -> BenchmarkResults:
    """The metrics of all repeats, in order of first appearance. Raises LabError if nothing was measured."""
    measured = [
        MeasuredMetric(
            name=each.metric, unit=each.unit, runs=[RunValue(value=each.value, histogram=each.histogram)]
        )
        for repeat in repeats
        for each in repeat.measured
    ]
    if not measured:
        raise LabError(
            f"{spec.name}: nothing was measured: no result came after the warm-up, and the CPU and memory of its"
            " processes are unknown"
        )
    return BenchmarkResults(
        date=now.isoformat(timespec="seconds"),
        machine={**machine, **repeats[0].facts},
        asked=_asked(spec),
        objective=spec.objective,
        judged_steps=spec.judged_steps,
        measurements=_merged(measured),
    )


def join_repeats(repeats: Sequence[Path], out: Path, label: str, facts: Mapping[str, str]) -> Path:
    """Joins folders of single repeats into one, named after the first and the label; returns its path.

    Machine and settings are those of the first. `facts`: further facts of the version.
    """
    first = repeats[0]
    made = out / f"{first.name}-{_slug(label)}"
    made.mkdir(parents=True)
    # Edited as text, because another version of Bettong may have written fields that this one does not know.
    ran = _REPEATS.sub(f"repeats = {len(repeats)}", (first / RUN_FILE).read_text(), count=1)
    (made / RUN_FILE).write_text(ran)
    found = [read(each / RESULTS) for each in repeats]
    merged = _merged([each for one in found for each in one.measurements])
    machine = {**found[0].machine, **facts}
    whole = found[0].model_copy(update={"machine": machine, "measurements": merged})
    (made / RESULTS).write_text(whole.model_dump_json(indent=1) + "\n")
    tables = []
    for number, each in enumerate(repeats, 1):
        table = pq.read_table(each / SERIES)
        numbers = pa.array([number] * table.num_rows, pa.int32())
        tables.append(table.set_column(table.column_names.index(_REPEAT), _REPEAT, numbers))
    pq.write_table(pa.concat_tables(tables), made / SERIES)
    return made


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _merged(measured: Sequence[MeasuredMetric]) -> list[MeasuredMetric]:
    """One metric for each name, with the runs of all repeats that have it, in order of first appearance."""
    found: dict[str, MeasuredMetric] = {}
    for each in measured:
        runs = [*found[each.name].runs, *each.runs] if each.name in found else each.runs
        found[each.name] = found.get(each.name, each).model_copy(update={"runs": runs})
    return list(found.values())


def _asked(spec: RunSpec) -> dict[str, str | int]:
    """All settings that decide what is measured. Images of a cluster are not among them: they are what is measured."""
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
        where = spec.kubernetes.model_dump(mode="json", include=_CLUSTER_FIELDS, exclude_none=True)
        asked["kubernetes"] = (
            ", ".join(f"{name} {value}" for name, value in where.items()) or "current context"
        )
    asked.update(spec.settings)
    return asked
