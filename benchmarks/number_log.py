"""Numbers of keys, from the log of their stage to the last result in the log: what speed hangs on besides messages."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks import implied_volatility, number_load
from benchmarks.folding import FRAME_BYTES_MAX
from benchmarks.log_load import Feeder, Splitter, rounds
from benchmarks.measuring import Sample, Stopwatch
from benchmarks.worker_alone import HOT, KEYS_FEW, KEYS_MANY, RARE
from bettong.application.plan import plan
from bettong.config.processor import Schedule
from bettong.edges.application_file import load
from bettong.edges.kafka_log import LogReader, LogWriter
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.frames.columns import Array
from bettong.frames.frame import Frame, decode
from bettong.identifiers import TopicPartition
from bettong.lab.target.folding import await_folded
from bettong.local.options import SuiteOptions
from bettong.local.suite import Suite
from bettong.topics import sink_topic, stage_topic

# Of each partition, where keys are spread evenly.
FRAME_MESSAGES = 16_384
# Each a process of its own, with one core and 1 GiB.
_EXECUTORS = "local-cluster[{},1,1024]"
_COSTLY_MESSAGES, _COSTLY_KEYS = 1_600_000, 10_000


@dataclass(frozen=True, slots=True)
class Case:
    """An application of numbers, and how many results a load must have, and their sum."""

    application: Path
    right: Callable[[Array, Array], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Load:
    """So many messages by chance over `keys`, each of which has a state before; one in `every` has a result."""

    messages: int
    keys: int = KEYS_FEW
    every: int = RARE


@dataclass(frozen=True, slots=True)
class Processing:
    """How they are processed; `settings` are the services', by their names in bettong.config."""

    schedule: Schedule
    partitions: int
    compiled: bool = True
    settings: Mapping[str, str] = field(default_factory=dict)


SUMS = Case(number_load.APPLICATION, number_load.right)


def speed(case: Case, load_: Load, processing: Processing) -> Sample:
    """Messages a second of one run; the results are checked."""
    planned = plan(load(str(case.application)))
    (source,), (stage,) = planned.sources, planned.stages
    fed = number_load.numbers(load_.messages, keys=load_.keys, every=load_.every)
    options = SuiteOptions(
        application=str(case.application),
        partitions=processing.partitions,
        schedule=processing.schedule,
        compiled=processing.compiled,
        settings=dict(processing.settings),
    )
    with Suite(options) as suite, RedisStore(suite.record.redis_connection, planned.application) as store:
        splitter, batch = Splitter(processing.partitions), FRAME_MESSAGES * processing.partitions
        topic = stage_topic(planned.application, stage.name)
        schema = planned.sinks[0].parent.schema
        assert schema is not None
        results = sink_topic(planned.application, planned.sinks[0].name)
        starts = {TopicPartition(results, partition): 0 for partition in range(processing.partitions)}
        with (
            LogWriter(
                suite.record.kafka_connection, frame_bytes_max=FRAME_BYTES_MAX, buffer_bytes_max=1 << 26
            ) as log,
            LogReader(suite.record.kafka_connection, starts, frame_bytes_max=FRAME_BYTES_MAX) as reader,
        ):
            feeder = Feeder(log, topic)
            feeder.append(number_load.frames(splitter, source, number_load.all_keys(load_.keys), batch))
            await_folded(LiveMetrics(store), load_.keys)
            ready, expected = list(number_load.frames(splitter, source, fed, batch)), case.right(*fed)
            watch = Stopwatch(suite.record.services)
            feeder.append(ready)
            frames = _results(reader, expected[0], feeder)
            sample = watch.sample(load_.messages)
    sums = np.concatenate([number_load.sums(frame, schema) for frame in frames])
    assert (len(sums), int(sums.sum())) == expected, "the results are wrong"
    return sample


def hot_against_rare(messages: int, processing: Processing) -> Sample:
    """The speed with one result for two messages, in percent of that with one for a thousand."""
    rare, hot = (speed(SUMS, Load(messages, every=each), processing) for each in (RARE, HOT))
    return Sample(100 * hot.value / rare.value, hot.cpu_s_per_million, hot.parts)


def many_keys_against_few(messages: int, processing: Processing) -> Sample:
    """The speed with a state of 1 M keys, in percent of that with 350."""
    few, many = (speed(SUMS, Load(messages, keys=each), processing) for each in (KEYS_FEW, KEYS_MANY))
    return Sample(100 * many.value / few.value, many.cpu_s_per_million, many.parts)


def two_against_one(*, schedule: Schedule, partitions: int) -> Sample:
    """How many times as fast two executors of one core are as one, on work that costs more than its way there."""
    case = Case(Path(implied_volatility.__file__), _volatilities)
    one, two = (
        speed(
            case,
            Load(_COSTLY_MESSAGES, keys=_COSTLY_KEYS),
            Processing(
                schedule, partitions, compiled=False, settings={"spark_master": _EXECUTORS.format(count)}
            ),
        )
        for count in (1, 2)
    )
    return Sample(two.value / one.value, two.cpu_s_per_million, two.parts)


def _volatilities(chosen: Array, values: Array) -> tuple[int, int]:
    """How many there are, and their sum, after `all_keys`, of which nothing comes."""
    _, totals = number_load.volatilities_of(chosen, values, keys=_COSTLY_KEYS)
    return len(totals), int(totals.sum())


def _results(reader: LogReader, count: int, feeder: Feeder) -> list[Frame]:
    """The frames that so many results come in, to be checked when the clock stands; raises what the feeder met."""
    found: list[Frame] = []
    for records in rounds(reader):
        feeder.check()
        frames = [decode(record.value) for record in records]
        found += frames
        count -= sum(frame.count for frame in frames)
        if count <= 0:
            break
    return found
