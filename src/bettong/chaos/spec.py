"""A fault spec: workload, invariants and faults. Data, checked once, all errors reported at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from bettong.client.message_files import Format
from bettong.config import toml_files
from bettong.config.reading import FileSettings
from bettong.local.options import SENDERS_MAX
from bettong.services import SERVICES

_TAGGED = ("kill", "pause", "wipe", "starve", "cut", "delay", "clock", "fill", "stall", "crowd")


class OtherProcess(StrEnum):
    """A process of the suite that is not one of our services. (The processor is the driver's Python process.)"""

    JVM = "spark-jvm"  # the driver's Java, with a `local` master the executor too
    EXECUTOR = "spark-executor"  # with a `local-cluster` master, Java processes of their own
    WORKER = "python-worker"
    KAFKA = "kafka"
    REDIS = "redis"


# The processes of the suite that faults may target.
TARGETS: tuple[str, ...] = (*SERVICES, *OtherProcess)


def _check_target(name: str) -> str:
    if name not in TARGETS:
        raise ValueError(f"a suite has no process {name!r}, expected one of {', '.join(TARGETS)}")
    return name


Target = Annotated[str, AfterValidator(_check_target)]


class Link(StrEnum):
    """A connection that goes through a proxy."""

    INGEST = "ingest"  # from clients to the sender
    SUBSCRIBE = "subscribe"  # from subscribers to the receiver


class Order(StrEnum):
    """The order in which several inputs are fed."""

    TURNS = "turns"  # each durable before the next: the log has one order, so every run has one output
    FREE = "free"  # concurrently


class Compare(StrEnum):
    """How a sink's output is compared with the golden one."""

    BYTES = "bytes"  # file by file
    KEYS = "keys"  # the messages of each key, in their order
    MESSAGES = "messages"  # the messages, in any order


Seconds = Annotated[float, Field(ge=0, le=86_400)]
Split = Literal["lines", "prefixed", "whole"] | Annotated[int, Field(ge=1, le=1 << 24)]


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Input(_Table):
    """A file for a source, as `bettong send` reads it. The default stream name is `chaos-<number>`."""

    source: str
    file: Path
    format: Format | None = None
    stream: Annotated[str, Field(min_length=1, max_length=100)] | None = None


class Workload(_Table):
    """The application, and its inputs."""

    application: str
    inputs: Annotated[list[Input], Field(min_length=1, max_length=64)]
    partitions: Annotated[int, Field(ge=1, le=4096)] = 4
    compiled: bool = True
    standby: bool = False  # a second processor, which takes over
    senders: Annotated[int, Field(ge=1, le=SENDERS_MAX)] = 1  # the inputs take turns among them
    order: Order = Order.TURNS
    rounds_per_s: Annotated[float, Field(gt=0, le=50)] = 5.0
    settings: FileSettings = {}
    spark: dict[str, str] = {}  # additional configuration of Spark, through spark-defaults.conf

    @model_validator(mode="after")
    def _feeds_every_sender(self) -> Self:
        if self.senders > len(self.inputs):
            raise ValueError(
                f"senders = {self.senders}, but inputs = {len(self.inputs)}: each sender needs an input that feeds it"
            )
        return self


class OutputComparison(_Table):
    """How a sink's output is compared.

    `split`: how messages are delimited in files: lines, prefixed (u32 length, big-endian, then the message), a fixed
    number of bytes, or whole (a file is one message). `key`: a field of JSON objects, or [start, stop] in the bytes of
    a message. `equals`: the source whose input, message by message, is the golden output. `expected`: a file of the
    expected messages, split as the sink's are, for example from a model; its path is relative to the spec's folder.
    """

    compare: Compare
    split: Split = "lines"
    key: str | tuple[int, int] | None = None
    equals: str | None = None
    expected: Path | None = None

    @model_validator(mode="after")
    def _needs_a_key(self) -> Self:
        if self.compare is Compare.KEYS and self.key is None:
            raise ValueError(
                'compare = "keys" needs a key: a field of JSON objects, or [start, stop] of bytes'
            )
        if self.equals is not None and self.expected is not None:
            raise ValueError("equals and expected both define the expected output: leave one of them out")
        if self.compare is Compare.BYTES and (self.equals is not None or self.expected is not None):
            raise ValueError(
                'equals and expected need compare = "keys" or "messages": those messages are not split by partition'
            )
        return self


class GrowthMax(_Table):
    """The most that each may grow over the run, relative to its median: 0.1 is a tenth. None: not checked.

    Checked by the upper end of the slope's 95 % interval (`bettong.chaos.growth`), so a run too short or too noisy to
    show that nothing grows does not pass.
    """

    memory: Annotated[float, Field(gt=0)] | None = None
    latency: Annotated[float, Field(gt=0)] | None = None
    lag: Annotated[float, Field(gt=0)] | None = None
    # The share of the run that is left out at its beginning; None: the default of `bettong.chaos.growth`.
    after: Annotated[float, Field(ge=0, le=0.9)] | None = None

    @property
    def bounds(self) -> dict[str, float]:
        """The bounds that are given, by metric."""
        return self.model_dump(exclude_none=True, exclude={"after"})


class Invariants(_Table):
    """Invariants besides equal output. `memory_mb`: the most memory of one process (RSS).

    `recovery_s_max`: by kind of fault, as reports name it (`kill sender`); checked on faults that no other overlapped,
    of which there must be at least one. Kinds that it does not name have no bound.
    """

    outputs: dict[str, OutputComparison] = {}
    memory_mb: dict[Target, Annotated[float, Field(gt=0)]] = {}
    recovery_s_max: dict[str, Seconds] = {}
    growth_max: GrowthMax = GrowthMax()


class _Nemesis(_Table):
    """When: at given times, or repeatedly after a gap drawn between two bounds, from `from_s` to `until_s`."""

    at_s: Annotated[list[Seconds], Field(max_length=10_000)] | None = None
    every_s: tuple[Seconds, Seconds] | None = None
    from_s: Seconds = 0.0
    until_s: Seconds | None = None

    @model_validator(mode="after")
    def _has_times(self) -> Self:
        if (self.at_s is None) == (self.every_s is None):
            raise ValueError("needs at_s or every_s, and not both")
        if self.every_s is not None and not 0 < self.every_s[1] >= self.every_s[0]:
            raise ValueError(f"every_s = {list(self.every_s)}: expected [least, most], most above 0")
        return self


class _OfProcesses(_Nemesis):
    targets: Annotated[list[Target], Field(min_length=1)]
    together: Annotated[int, Field(ge=1, le=7)] = 1  # how many different targets each time

    @model_validator(mode="after")
    def _has_enough_targets(self) -> Self:
        if self.together > len(set(self.targets)):
            raise ValueError(f"together = {self.together}, but there are {len(set(self.targets))} targets")
        return self


_Lasting = Annotated[tuple[Seconds, Seconds], Field(description="How long, drawn between two bounds.")]


class Kill(_OfProcesses):
    """SIGKILL."""

    kind: Literal["kill"]


class Pause(_OfProcesses):
    """SIGSTOP, and SIGCONT after `for_s`."""

    kind: Literal["pause"]
    for_s: _Lasting


class Wipe(_Nemesis):
    """Redis loses all its data (FLUSHALL)."""

    kind: Literal["wipe"]


class Starve(_Nemesis):
    """Redis has no memory left: it refuses every write for `for_s`, and answers everything else."""

    kind: Literal["starve"]
    for_s: _Lasting


class Cut(_Nemesis):
    """Connections are reset, and new ones refused for `for_s`."""

    kind: Literal["cut"]
    links: Annotated[list[Link], Field(min_length=1)] = [Link.INGEST]
    for_s: _Lasting


class Delay(_Nemesis):
    """Every byte takes `by_ms` longer, both ways, for `for_s`."""

    kind: Literal["delay"]
    links: Annotated[list[Link], Field(min_length=1)] = [Link.INGEST]
    for_s: _Lasting
    by_ms: Annotated[float, Field(gt=0, le=10_000)]


class ClockJump(_Nemesis):
    """A sender's clock goes wrong by an amount drawn between two bounds (negative: back), for `for_s`.

    With several senders, each jump changes the clock of one, drawn at random.
    """

    kind: Literal["clock"]
    by_s: tuple[Annotated[float, Field(ge=-1e8, le=1e8)], Annotated[float, Field(ge=-1e8, le=1e8)]]
    for_s: _Lasting


class Fill(_Nemesis):
    """The suite's disk is full for `for_s`. The suite then runs on its own file system of `disk_mb`: needs root."""

    kind: Literal["fill"]
    for_s: _Lasting
    disk_mb: Annotated[int, Field(ge=256, le=16_384)] = 1024


class Stall(_Nemesis):
    """Subscribers, spread over all sinks, ask for every result from the start and read none, for `for_s`."""

    kind: Literal["stall"]
    subscribers: Annotated[int, Field(ge=1, le=1024)] = 8
    for_s: _Lasting


class Crowd(_Nemesis):
    """Many clients each open a stream at the first source and end it at once; they have `for_s` for it.

    With a `row`, a text, each tenth first sends that text followed by a number. The source must refuse it: such rows
    become dead letters, of which none may be lost or doubled, and every stream must be done within `for_s`.
    """

    kind: Literal["crowd"]
    streams: Annotated[int, Field(ge=1, le=1_000_000)] = 1000
    row: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    for_s: _Lasting


Nemesis = Annotated[
    Kill | Pause | Wipe | Starve | Cut | Delay | ClockJump | Fill | Stall | Crowd, Field(discriminator="kind")
]


class Spec(_Table):
    """The whole spec. Faults and inputs are spread over `duration_s`; then `settle_s_max` to end."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    seed: int = 0
    duration_s: Annotated[float, Field(gt=0, le=86_400)]
    settle_s_max: Annotated[float, Field(gt=0, le=3600)] = 180.0
    workload: Workload
    invariants: Invariants = Invariants()
    nemeses: Annotated[list[Nemesis], Field(max_length=100)] = []

    @model_validator(mode="after")
    def _names_fit(self) -> Self:
        sources = {each.source for each in self.workload.inputs}
        for sink, output in self.invariants.outputs.items():
            if output.equals is not None and output.equals not in sources:
                raise ValueError(
                    f"invariants.outputs.{sink}.equals = {output.equals!r}: no input is for that source"
                )
        check_times(self.nemeses, self.duration_s)
        return self


def check_times(nemeses: Sequence[Nemesis], duration_s: float) -> None:
    """Raises ValueError where a fault would begin after the run's end."""
    late = [at for each in nemeses for at in [*(each.at_s or []), each.from_s] if at > duration_s]
    if late:
        raise ValueError(f"a fault at {min(late):g} s: the run lasts {duration_s:g} s")


def read(path: Path) -> Spec:
    """A spec from a TOML file. Raises SettingsError that names file, table and field of every fault at once."""
    return checked(toml_files.read(path), str(path))


def checked(content: Mapping[str, object], where: str) -> Spec:
    """A spec from its tables; errors as those of `read`, about `where`."""
    return toml_files.checked(Spec, content, where, tags=_TAGGED)


def lasting(spec: Spec, duration_s: float) -> Spec:
    """The spec with another duration. Raises SettingsError where a fault would begin after its end."""
    return checked({**spec.model_dump(exclude_unset=True), "duration_s": duration_s}, spec.name)
