"""A run file: the application, its load and rates, and the objective. Checked once, with all errors reported at once.

name = "market spread, steady"
application = "examples/market_spread/risk_check.py"
load = "benchmarks/lab/market_spread.py"

[[steps]]
messages_per_s = 100_000
seconds = 30
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Discriminator, Field, StrictBool, Tag, model_validator

from bettong.chaos.spec import Kill, OtherProcess, Pause, Starve, Wipe, check_times
from bettong.chaos.timetable import PlannedFault, planned
from bettong.config import toml_files
from bettong.config.processor import Schedule
from bettong.config.reading import FileSettings
from bettong.errors import SettingsError
from bettong.lab.load_table import MESSAGES_MAX, TAGS, LoadTable, load_kind

Rate = Annotated[float, Field(gt=0, le=1e9)]
# A thousand hours, the longest soak.
_LONGEST_S = 3_600_000.0
Seconds = Annotated[float, Field(gt=0, le=_LONGEST_S)]
Fault = Annotated[Kill | Pause | Wipe | Starve, Field(discriminator="kind")]
Load = Annotated[
    Annotated[str, Tag("<path>")] | Annotated[LoadTable, Tag("<table>")], Discriminator(load_kind)
]
_TAGS = TAGS | {"kill", "pause", "wipe", "starve"}
# In others, the data of one run would still be there in the next.
_OWN_STORES = {"kafka", "redis", "snapshots"}
_NAME_MAX = 100
_SOAK = " (soak)"


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class LoadStep(_Table):
    """`messages_per_s` for `seconds`. 0: nothing is sent, to measure an idle suite."""

    messages_per_s: Annotated[float, Field(ge=0, le=1e9)]
    seconds: Seconds

    @property
    def messages(self) -> int:
        """The number of messages in the step."""
        return round(self.messages_per_s * self.seconds)


def step_names(steps: Sequence[LoadStep]) -> list[str]:
    """The names of steps in metrics: their rates, and their numbers too where steps have the same rate."""
    rates = [f"at {step.messages_per_s:,.0f}/s" for step in steps]
    return [
        f"in step {number} {rate}" if rates.count(rate) > 1 else rate for number, rate in enumerate(rates, 1)
    ]


class Objective(_Table):
    """The upper bound of each percentile of a step's latency, in ms. None: not judged."""

    p50_ms: Rate | None = None
    p99_ms: Rate | None = None
    p999_ms: Rate | None = None


class KubernetesTable(_Table):
    """Where on a cluster a run installs its release, and from what. Paths are relative to the working directory.

    `context`: of the kubeconfig; by default the current one. `namespace`: created for the run and removed with it.
    `images`: FOLDER:TAG, by default the chart's. `values`: a file on top of the chart's values-dev.yaml. `application`:
    its path in the images; without it the chart mounts the run's file alone, without other modules.
    """

    context: str | None = None
    namespace: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")] = "bettong-lab"
    images: str | None = None
    values: Path | None = None
    chart: Path | None = None
    application: str | None = None
    ready_s_max: Seconds = 600.0


class RunSpec(_Table):
    """A run file. Either `steps`, or `messages`, which are sent as fast as possible.

    `load`: the path of a Python file, or a table of sources.
    `processes`: client processes; each source is sent by one of them. `frame_messages`: into a topic, at a rate,
    each message is sent by itself. `warm_up_s`: the part of the first step whose latencies are not measured. `faults`:
    those of `bettong chaos` that need nothing but the suite. `kubernetes`: run there, instead of on this machine.
    """

    name: Annotated[str, Field(min_length=1, max_length=_NAME_MAX)]
    application: Annotated[str, Field(min_length=1)]
    load: Load
    seed: int = 0
    repeats: Annotated[int, Field(ge=1, le=100)] = 5
    schedule: Schedule = Schedule.RESIDENT
    partitions: Annotated[int, Field(ge=1, le=4096)] = 16
    compiled: StrictBool = True
    settings: FileSettings = {}
    processes: Annotated[int, Field(ge=1, le=16)] = 1
    frame_messages: Annotated[int, Field(ge=1, le=100_000)] = 500
    warm_up_s: Annotated[float, Field(ge=0, le=3600)] = 5.0
    steps: Annotated[list[LoadStep], Field(max_length=100)] = []
    messages: Annotated[int, Field(ge=1, le=10_000_000_000)] | None = None
    objective: Objective = Objective()
    faults: Annotated[list[Fault], Field(max_length=100)] = []
    kubernetes: KubernetesTable | None = None

    @property
    def lasting_s(self) -> float:
        """The duration of all steps."""
        return sum(step.seconds for step in self.steps)

    @property
    def judged_steps(self) -> list[str]:
        """The names of the steps that have messages, and so latencies."""
        named = zip(step_names(self.steps), self.steps, strict=True)
        return [name for name, step in named if step.messages_per_s]

    @property
    def sending_s_max(self) -> float:
        """How long clients may send: as long as the steps are, or as the longest run may be."""
        return self.lasting_s or _LONGEST_S

    @property
    def all_messages(self) -> int:
        """The number of messages: `messages`, or those of all steps."""
        return self.messages if self.messages is not None else sum(step.messages for step in self.steps)

    @property
    def planned_faults(self) -> tuple[PlannedFault, ...]:
        """All faults, each with its time since the beginning."""
        return planned(self.faults, self.seed, self.lasting_s)

    def over(self, steps: list[LoadStep]) -> RunSpec:
        """The run with other steps.

        Raises SettingsError if a step has no message, the first one is over before the warm-up is, a fault would come
        after the end, or a load table would have to make too many messages.
        """
        try:
            _check_steps(steps, self.warm_up_s)
            _check_faults(self.faults, sum(step.seconds for step in steps))
            _check_size(self.load, sum(step.messages for step in steps))
        except ValueError as error:
            raise SettingsError(f"{self.name}: {error}") from None
        return self.model_copy(update={"steps": steps, "messages": None})

    @model_validator(mode="after")
    def _has_one_load(self) -> Self:
        if bool(self.steps) == (self.messages is not None):
            raise ValueError("needs steps, or messages that go as fast as they can, and not both")
        if self.messages is not None and self.objective != Objective():
            raise ValueError("an objective is about a rate: give steps, not messages")
        if self.objective != Objective() and not any(each.messages_per_s for each in self.steps):
            raise ValueError("an objective is about latency: give a step that has messages")
        if self.messages is not None and self.faults:
            raise ValueError(
                "faults come at times of a run: give steps, because messages have no known duration"
            )
        if self.kubernetes is not None and self.faults:
            raise ValueError(
                "faults are injected into processes of this machine: leave them out, or the table kubernetes"
            )
        _check_settings(self.settings)
        _check_steps(self.steps, self.warm_up_s)
        _check_faults(self.faults, self.lasting_s)
        _check_executors(self.faults, self.settings)
        _check_size(self.load, self.all_messages)
        return self


def _check_settings(settings: Mapping[str, str]) -> None:
    """Raises ValueError for what the run file itself says, and for stores that are not the run's own."""
    if fields := sorted(settings.keys() & RunSpec.model_fields.keys()):
        raise ValueError(f"settings: {', '.join(fields)}: give it as a field of the run, not of its settings")
    if stores := sorted(settings.keys() & _OWN_STORES):
        raise ValueError(
            f"settings: {', '.join(stores)}: a run starts its own Kafka and Redis, and uses no others"
        )


def _check_steps(steps: Sequence[LoadStep], warm_up_s: float) -> None:
    """Raises ValueError if a step has less than one message, or the first one ends within the warm-up."""
    for index, step in enumerate(steps):
        if 0 < step.messages_per_s * step.seconds < 1:
            raise ValueError(
                f"steps[{index}]: {step.messages_per_s:g} messages/s for {step.seconds:g} s are less than one message:"
                " give a higher rate, or a longer step"
            )
    if steps and warm_up_s >= steps[0].seconds:
        raise ValueError(
            f"warm_up_s is {warm_up_s:g} and the first step takes {steps[0].seconds:g} s, so none of its latencies"
            " would be measured: make that step longer, or warm_up_s shorter"
        )


def _check_size(load: str | LoadTable, messages: int) -> None:
    """Raises ValueError if a table would have to make more messages than are made and checked in memory."""
    if isinstance(load, LoadTable) and messages > MESSAGES_MAX:
        raise ValueError(
            f"load: {messages:,} messages, and of a table at most {MESSAGES_MAX:,} are made and checked in memory: take"
            " fewer, shorter steps or a lower rate, or write the load in Python"
        )


def _check_faults(faults: Sequence[Fault], lasting_s: float) -> None:
    """Raises ValueError if a fault would come too late, or its table need not lead to any."""
    check_times(faults, lasting_s)
    for index, each in enumerate(faults):
        until_s = min(lasting_s, each.until_s if each.until_s is not None else lasting_s)
        if each.at_s is not None:
            comes = any(each.from_s <= at_s <= until_s for at_s in each.at_s)
        else:
            comes = each.every_s is not None and each.from_s + each.every_s[1] <= until_s
        if not comes:
            raise ValueError(
                f"faults[{index}]: it may never be injected from {each.from_s:g} to {until_s:g} s of the run: give an"
                " earlier time, or a longer step"
            )


def _check_executors(faults: Sequence[Fault], settings: Mapping[str, str]) -> None:
    """Raises ValueError if a fault is for an executor, and none would run."""
    for index, each in enumerate(faults):
        targets = each.targets if isinstance(each, Kill | Pause) else []
        if OtherProcess.EXECUTOR in targets and not settings.get("spark_master", "").startswith(
            "local-cluster"
        ):
            raise ValueError(
                f"faults[{index}]: without a local cluster the driver executes, and no {OtherProcess.EXECUTOR} runs:"
                ' give settings = { spark_master = "local-cluster[2,1,1024]" }, two executors of a core and 1024 MB'
            )


def read(path: Path) -> RunSpec:
    """Reads a run file. Raises SettingsError that names file, table and field of every fault at once."""
    return toml_files.checked(RunSpec, toml_files.read(path), str(path), tags=_TAGS)


def lasting(spec: RunSpec, seconds: float) -> RunSpec:
    """The run with its last step extended, so that all take `seconds`; named apart, because its results differ.

    Raises SettingsError if the other steps take that long, or as `RunSpec.over` does.
    """
    if not spec.steps:
        raise SettingsError(
            f"{spec.name} has no steps, so there is no rate to hold for hours: give it steps instead of messages"
        )
    *others, last = spec.steps
    left_s = seconds - sum(step.seconds for step in others)
    if left_s <= 0:
        raise SettingsError(f"{spec.name}: its first steps take longer than the {seconds:g} s asked for")
    longer = spec.over([*others, last.model_copy(update={"seconds": left_s})])
    return longer.model_copy(update={"name": spec.name[: _NAME_MAX - len(_SOAK)] + _SOAK})


def read_all(paths: Sequence[Path]) -> list[RunSpec]:
    """Reads run files that take turns. Raises SettingsError, also if a file that one names is missing.

    Two of one name are an error, too, because it names their folders.
    """
    specs = [read(path) for path in paths]
    names = [spec.name for spec in specs]
    if twice := {name for name in names if names.count(name) > 1}:
        raise SettingsError(f"two run files are called {min(twice)!r}: give each a name of its own")
    if faults := [fault for path, spec in zip(paths, specs, strict=True) for fault in _missing(path, spec)]:
        raise SettingsError("; ".join(faults))
    return specs


def _missing(path: Path, spec: RunSpec) -> Iterator[str]:
    """A fault for each file that is missing: better now than after hours of other runs."""
    named = {"application": spec.application.partition(":")[0]}
    if isinstance(spec.load, str):
        named["load"] = spec.load
    else:
        named |= {
            f"load.sources[{number}].file": each.file
            for number, each in enumerate(spec.load.sources)
            if each.file is not None
        }
    for field, file in named.items():
        if not Path(file).is_file():
            yield f"{path}: {field} = {file!r}: there is no such file; name it from the working directory, {Path.cwd()}"
