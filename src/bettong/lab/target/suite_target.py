"""A run on this machine, on its own suite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bettong.application.plan import Plan
from bettong.chaos.injecting import inject, restarts
from bettong.chaos.lag import LagWatch
from bettong.chaos.nemeses import Arena, Injected, Nemesis
from bettong.chaos.spec import OtherProcess
from bettong.chaos.timetable import PlannedFault
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.lab.spec import RunSpec
from bettong.lab.target.folding import await_folded
from bettong.lab.target.gc_pauses import logging_pauses, pauses
from bettong.lab.target.parts_sampling import PartsSampling
from bettong.lab.target.pauses import assignment_changes
from bettong.lab.target.sampling import UsageSampling
from bettong.lab.target.target import Collected
from bettong.lab.target.topics import RunTopics, run_topics
from bettong.local.options import SuiteOptions
from bettong.local.suite import Suite
from bettong.services import PROCESSOR

_CONNECTIONS = "connections"
_GC_LOG = "gc_log"


@dataclass(frozen=True, slots=True)
class SuiteTarget:
    """See `RunTarget`; made by `suite_target`. `is_paced`: messages come at a rate, so latencies say something."""

    suite: Suite
    topics: RunTopics | None
    plan: Plan
    faults: Sequence[PlannedFault]
    nemesis: Nemesis
    folder: Path
    is_paced: bool

    @property
    def sender(self) -> str:
        """See `RunTarget`."""
        return self.suite.record.sender

    @property
    def receiver(self) -> str:
        """See `RunTarget`."""
        return self.suite.record.receiver

    def await_folded(self, messages: int) -> None:
        """See `RunTarget`."""
        record = self.suite.record
        with RedisStore(record.redis_connection, record.name) as store:
            await_folded(LiveMetrics(store), messages)

    @contextmanager
    def collecting(self, begin_s: float, *, positions_every_s: float) -> Iterator[Collected]:
        """See `RunTarget`."""
        found, parts = Collected(), PartsSampling(lambda: self.suite.record)
        with (
            UsageSampling(lambda: self.suite.record.services, begin_s) as sampling,
            LagWatch(self.plan, lambda: self.suite.record, every_s=positions_every_s) as watch,
            parts if self.is_paced else nullcontext(),
        ):
            yield found
        found.usage, found.positions, found.parts = sampling.usage, watch.positions, parts.samples
        found.gc_pauses = [each for each in pauses(self.folder) if each.at_s >= begin_s]
        log = self.suite.record.services[PROCESSOR.name].log.read_text()
        found.changes = [each for each in assignment_changes(log) if each.at_s >= begin_s]

    def inject_faults(self, begin_s: float) -> list[Injected]:
        """See `RunTarget`."""
        injected: list[Injected] = []
        inject(self.faults, self.nemesis, self.suite, start_s=begin_s, injected=injected)
        return injected

    def wait(self, seconds: float) -> None:
        """See `RunTarget`."""
        self.suite.wait_with_all(seconds)

    def check(self) -> None:
        """See `RunTarget`."""
        self.suite.wait_with_all(0.0)


@contextmanager
def suite_target(spec: RunSpec, plan: Plan) -> Iterator[SuiteTarget]:
    """Starts a suite, and a Kafka for the application's topics; stops both when the context exits."""
    faults = spec.planned_faults
    with ExitStack() as opened:
        folder = Path(opened.enter_context(TemporaryDirectory(prefix="bettong-lab-")))
        topics = opened.enter_context(
            run_topics(plan, spec.partitions, folder, connections=spec.settings.get(_CONNECTIONS))
        )
        suite = opened.enter_context(Suite(_options(spec, topics, faults, folder)))
        nemesis = opened.enter_context(Nemesis(Arena(lambda: suite.record, {})))
        yield SuiteTarget(suite, topics, plan, faults, nemesis, folder, is_paced=bool(spec.steps))


def _options(
    spec: RunSpec, topics: RunTopics | None, faults: Sequence[PlannedFault], folder: Path
) -> SuiteOptions:
    ours = {_GC_LOG: str(folder)} | ({} if topics is None else {_CONNECTIONS: str(topics.connections)})
    return SuiteOptions(
        application=spec.application,
        partitions=spec.partitions,
        schedule=spec.schedule,
        compiled=spec.compiled,
        settings=spec.settings | ours,
        environment={
            PROCESSOR.name: logging_pauses(folder, OtherProcess.JVM),
            OtherProcess.KAFKA: logging_pauses(folder, OtherProcess.KAFKA),
        },
        restarts=restarts(faults),
    )
