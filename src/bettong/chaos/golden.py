"""The expected output: from the input itself, from given files, or from an undisturbed run of the same input."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bettong.chaos.accounts import FinalAccounts, final_accounts
from bettong.chaos.crowds import row_of
from bettong.chaos.feeding import Feeding
from bettong.chaos.outputs import Table, table, without_numbers
from bettong.chaos.preparing import PreparedRun
from bettong.chaos.watching import ResultWatch, file_endings
from bettong.client.sender import Sender
from bettong.edges.kafka_log import LogAdmin
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.errors import LocalError
from bettong.identifiers import PartitionId
from bettong.local.options import SuiteOptions
from bettong.local.record import SuiteRecord
from bettong.local.suite import Suite
from bettong.metrics import OFFSET
from bettong.topics import DEAD_LETTERS, sink_topic, stage_topic

_POLL_S = 0.3
_ROWS = 1000  # of crowds, in a frame


@dataclass(frozen=True, slots=True)
class Golden:
    """The expected output by sink; the accounts of the undisturbed run, None where there was none."""

    outputs: dict[str, Table]
    accounts: FinalAccounts | None = None


def golden(prepared: PreparedRun, options: SuiteOptions, folder: Path, say: Callable[[str], None]) -> Golden:
    """The expected output. Starts a suite when an undisturbed run is needed."""
    found: dict[str, Table] = {sink: {} for sink in prepared.outputs}
    accounts: FinalAccounts | None = None
    if prepared.needs_undisturbed_run:
        say("undisturbed run: starting Kafka, Redis, sender, processor and receiver")
        outputs, accounts = _run_undisturbed(prepared, options, folder, say)
        found |= outputs
    for sink, output in prepared.outputs.items():
        if output.equals is not None:
            inputs = [feed for feed in prepared.feeds if feed.source == output.equals]
            found[sink] = table(((feed.file.name, feed.file.read_bytes()) for feed in inputs), output)
        elif output.expected is not None:
            found[sink] = table([(output.expected.name, output.expected.read_bytes())], output)
    return Golden(found, accounts)


def tables(prepared: PreparedRun, results: Path) -> dict[str, Table]:
    """The contents of a run's files, by sink."""
    return {sink: table(files(results, sink), output) for sink, output in prepared.outputs.items()}


def files(results: Path, sink: str) -> Iterator[tuple[str, bytes]]:
    """The files of a sink, one at a time, in the order of their partitions."""
    for path in sorted((results / sink).glob("*")):
        if path.suffix in (".jsonl", ".bin"):
            content = path.read_bytes()
            yield path.name, without_numbers(content) if sink == DEAD_LETTERS else content


def sizes(results: Path) -> dict[str, int]:
    """The sizes of all sinks' files that are not empty, in bytes."""
    return {
        str(path.relative_to(results)): path.stat().st_size
        for path in results.rglob("*")
        if path.suffix in (".jsonl", ".bin") and path.stat().st_size
    }


def _run_undisturbed(
    prepared: PreparedRun, options: SuiteOptions, folder: Path, say: Callable[[str], None]
) -> tuple[dict[str, Table], FinalAccounts]:
    results = folder / "straight"
    workload = prepared.spec.workload
    options = options.model_copy(update={"results": results, "environment": {}, "keep": None})
    with Suite(options, say=say) as suite:
        addresses = suite.record.senders
        feeding = Feeding(
            prepared.feeds, addresses, order=workload.order, rounds=prepared.rounds, paced_s=None
        )
        say(f"undisturbed run: feeding {sum(feed.total for feed in prepared.feeds):,} messages")
        with ResultWatch(
            suite.record.receiver, file_endings(prepared.plan), folder / "straight-watched"
        ) as watch:
            try:
                feeding.start()
                while not feeding.done():
                    suite.wait_with_all(_POLL_S)
                _send_crowds(prepared, addresses[0])
                _drain(prepared, suite, watch, results)
                accounts = final_accounts(prepared.plan, suite.record, suite.wait_with_all)
            finally:
                feeding.stop()
    return tables(prepared, results), accounts


def _send_crowds(prepared: PreparedRun, address: str) -> None:
    """Sends the rows of all crowds from one client: their results do not depend on the client."""
    for crowd in (fault for fault in prepared.faults if fault.row):
        rows = [row for stream in range(int(crowd.by)) if (row := row_of(crowd, stream)) is not None]
        with Sender(address, prepared.plan.sources[0].name) as sender:
            for start in range(0, len(rows), _ROWS):
                sender.send_rows(rows[start : start + _ROWS])


def _drain(prepared: PreparedRun, suite: Suite, watch: ResultWatch, results: Path) -> None:
    """Waits until every stage has folded its log, and every sink has delivered its own."""
    deadline_s = time.monotonic() + prepared.spec.settle_s_max
    name = prepared.plan.application
    with (
        LogAdmin(suite.record.kafka_connection) as admin,
        RedisStore(suite.record.redis_connection, name) as store,
    ):
        while behind := _behind(prepared, suite.record, admin, LiveMetrics(store), watch, results):
            if time.monotonic() > deadline_s:
                raise LocalError(
                    f"the undisturbed run did not end within {prepared.spec.settle_s_max:g} s after its input:"
                    f" {', '.join(behind[:3])} behind; settle_s_max may be too short"
                )
            suite.wait_with_all(_POLL_S)


def _behind(
    prepared: PreparedRun,
    record: SuiteRecord,
    admin: LogAdmin,
    live_metrics: LiveMetrics,
    watch: ResultWatch,
    results: Path,
) -> list[str]:
    """The parts with work left; empty only when none had any for as long as this call took."""
    name = prepared.plan.application
    stages = {stage_topic(name, stage.name): stage.name for stage in prepared.plan.stages}
    sinks = {sink_topic(name, sink): sink for sink in prepared.outputs}
    before, folded = admin.ends(stages), live_metrics.partitions()
    behind = [
        f"stage {stages[topic]}, partition {partition}"
        for (topic, partition), end in before.items()
        if end > int(folded.get(PartitionId(stages[topic], partition), {}).get(OFFSET.name, 0))
    ]
    # Folded records are written once Spark notes their batch as committed.
    if _newest_batch(record.directory, "offsets") != _newest_batch(record.directory, "commits"):
        behind.append("a batch")
    if admin.ends(stages) != before:
        behind.append("a log that grows")
    behind += [
        f"sink {sinks[topic]}, partition {partition}"
        for (topic, partition), end in admin.ends(sinks).items()
        if end > watch.offsets(sinks[topic]).get(partition, 0)
    ]
    if sizes(results) != sizes(results.parent / f"{results.name}-watched"):
        behind.append("files of results")
    return behind


def _newest_batch(directory: Path, what: str) -> int:
    """The newest batch in Spark's checkpoint, whose files are named by their batch; -1 before the first."""
    found = (path.name for path in (directory / "checkpoint").rglob(f"{what}/*"))
    return max((int(name) for name in found if name.isdigit()), default=-1)
