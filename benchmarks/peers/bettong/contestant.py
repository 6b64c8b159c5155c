"""Bettong as it is compared with peers: a whole suite that reads the broker's topic, and writes into the other."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.nexmark import SITE
from benchmarks.peers.race import RaceError, Running, Trial
from benchmarks.peers.roster import ROOT
from benchmarks.peers.workloads import PeerWorkload
from bettong.application.plan import plan
from bettong.config.processor import Schedule
from bettong.edges.application_file import load
from bettong.edges.redis_store import RedisSnapshots, RedisStore
from bettong.errors import BettongError
from bettong.identifiers import PartitionId
from bettong.local.options import SuiteOptions
from bettong.local.suite import Suite

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class BettongSuite:
    """Its own Kafka and Redis are counted as its processes."""

    workload: PeerWorkload
    schedule: Schedule
    guarantee = "exactly once (transactions at both ends); a snapshot each second"

    @contextmanager
    def start(self, trial: Trial) -> Iterator[Running]:
        """Runs the suite until left; see `race.Start`."""
        connections = trial.folder / "connections.json"
        connections.write_text(json.dumps({"exchange": {"bootstrap_servers": trial.bootstrap}}))
        root = {"PYTHONPATH": f"{ROOT}:{SITE}"}  # applications import benchmarks and examples
        query = f":{self.workload.query}" if self.workload.query else ""
        options = SuiteOptions(
            application=f"{HERE / self.workload.module}.py{query}",
            partitions=trial.partitions,
            schedule=self.schedule,
            environment=dict.fromkeys(("sender", "processor", "receiver"), root),
            settings={"connections": str(connections), "spark_master": f"local[{trial.processes}]"},
        )
        with Suite(options) as suite:
            yield _Running(suite)


class _Running:
    def __init__(self, suite: Suite) -> None:
        self._suite = suite

    def pids(self) -> list[int]:
        """See `race.Running`."""
        return [each.pid for each in self._suite.record.services.values()]

    def check(self) -> None:
        """See `race.Running`."""
        try:
            self._suite.check()
        except BettongError as error:
            raise RaceError(str(error).splitlines()[-1]) from error

    def stored_bytes(self) -> int:
        """See `race.Running`: its snapshots."""
        record = self._suite.record
        partitions = [
            PartitionId(stage.name, number)
            for stage in plan(load(record.application)).stages
            for number in range(record.partitions)
        ]
        with RedisStore(record.redis_connection, record.name) as store:
            snapshots = RedisSnapshots(store)
            return sum(
                len(snapshots.load(partition, increment) or b"")
                for partition in partitions
                for increment in snapshots.increments(partition)
            )
