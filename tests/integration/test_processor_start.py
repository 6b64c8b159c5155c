"""The processor's start: what it waits for, and what it refuses with one line and an exit code."""

import json
import shutil
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.client import HTTPException
from pathlib import Path

import psutil
import pytest

from bettong import metrics
from bettong.application.plan import plan
from bettong.class_archives import RESIDENT, archive
from bettong.config.processor import ProcessorSettings
from bettong.config.reading import read
from bettong.edges.application_file import load
from bettong.edges.kafka_log import LogAdmin, LogWriter
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.edges.snapshot_stores import REDIS, snapshot_store
from bettong.identifiers import PartitionId, TopicPartition
from bettong.inspection.live.parts_at_rest import PartsAtRest, repartitioning_of
from bettong.local.addresses import LOOPBACK
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from bettong.snapshots.chain import chains
from bettong.topics import stage_topic
from tests.integration.applications import SUMS
from tests.servers.locations import locations_of
from tests.servers.processor_process import PARTITIONS, ProcessorProcess, payments_frame
from tests.servers.s3 import BUCKET
from tests.waiting import eventually

pytestmark = pytest.mark.slow

MINUTE_S = 60.0
SUPERSEDED_S = 5

PLAIN = """\
from dataclasses import dataclass
import bettong

@dataclass
class Payment:
    account: str
    amount: float

def same(payment: Payment) -> Payment:
    return payment

app = bettong.Application({name!r})
app.source("payments", schema=Payment, key="account").map(same).sink("out")
"""

NOT_COMPILABLE = """\
from dataclasses import dataclass
from typing import Annotated
import bettong

@dataclass
class Payment:
    account: Annotated[str, bettong.Width(8)]
    amount: float

@dataclass
class Sum:
    amount: float = 0.0

@bettong.compiled
def add(payment: Payment, total: Sum) -> Payment:
    print(open("/etc/hostname").read())
    return payment

app = bettong.Application({name!r})
app.source("payments", schema=Payment, key="account").stateful(add, state=Sum).sink("out")
"""

Start = Callable[..., ProcessorProcess]


@pytest.fixture
def start(
    tmp_path: Path, unique_name: Callable[..., str], kafka: KafkaBroker, redis_server: RedisServer
) -> Iterator[Start]:
    """Launches a processor; by default with all that it needs. Killed at the end."""
    with ExitStack() as stack:

        def launched(source: str = PLAIN, *, launch: bool = True, **settings: str) -> ProcessorProcess:
            name = unique_name("start")
            parts = {"kafka": kafka.bootstrap, "redis": redis_server.url} | settings
            process = ProcessorProcess(name, source.format(name=name), tmp_path, **parts)
            stack.callback(process.kill)
            if launch:
                process.launch()
            return process

        yield launched


def test_it_waits_for_a_broker_that_is_away_and_runs_when_it_comes_and_a_java_that_dies_is_one_line(
    start: Start, own_broker: KafkaBroker
) -> None:
    own_broker.kill()
    processor = start(kafka=own_broker.bootstrap)

    def reason() -> str | None:
        metric_values = processor.metrics()
        return (
            metric_values[metrics.DETAIL.name] if metric_values.get(metrics.STATE.name) == "waiting" else None
        )

    assert own_broker.bootstrap in eventually(reason, seconds=2 * MINUTE_S, what="it says that it waits")
    own_broker.start()
    eventually(processor.answers, seconds=2 * MINUTE_S, what="it runs")
    assert processor.process is not None
    children = psutil.Process(processor.process.pid).children(recursive=True)
    (java,) = [each for each in children if each.name() == "java"]
    assert str(archive(RESIDENT)) in {each.path for each in java.memory_maps()}, (
        "Java started without its archive"
    )
    java.kill()
    assert processor.status() == 6
    assert processor.last_line().startswith("bettong: error: Spark's Java process ended")
    assert "Traceback" not in processor.logged()
    assert "py4j" not in processor.logged()


def test_a_batch_that_was_not_begun_or_not_committed_is_planned_anew_with_all_that_has_come_since(
    start: Start, kafka: KafkaBroker, redis_server: RedisServer, tmp_path: Path
) -> None:
    """Killed in its first batch: Spark had begun to write the file, and refuses a folder that holds nothing else.

    And in a later one: else what came while it was down would wait for a second batch, while Java is still cold.
    """
    processor = start(launch=False, BETTONG_SCHEDULE="micro-batch")
    checkpoint = tmp_path / "checkpoint" / processor.name
    (checkpoint / "offsets").mkdir(parents=True)
    (checkpoint / "offsets" / ".0.3c5d0d7e-1c1e-4a34-b5a6-3a5a1f3f5d6e.tmp").write_text("v1\n")
    processor.launch()
    eventually((checkpoint / "offsets" / "0").exists, seconds=2 * MINUTE_S, what="the first batch begins")
    topic = stage_topic(processor.name, "payments")

    def feed(sequence: int) -> None:
        with LogWriter(kafka.bootstrap, frame_bytes_max=1024 * 1024, buffer_bytes_max=1 << 24) as writer:
            writer.append(TopicPartition(topic, 0), payments_frame(processor, sequence), lambda _: None)
            writer.flush(30)

    def ends() -> dict[int, int]:
        """Of each batch that is committed, where it ends in that partition."""
        return {
            int(each.name): json.loads((checkpoint / "offsets" / each.name).read_text().splitlines()[-1])[
                topic
            ]["0"]
            for each in (checkpoint / "commits").glob("[0-9]*")
        }

    eventually(ends, seconds=MINUTE_S, what="a batch is committed before that")
    feed(1)
    eventually(lambda: 1 in ends().values(), seconds=MINUTE_S, what="its batch is committed")
    processor.terminate()
    assert processor.status() == 0
    batch = max(ends())
    assert ends()[batch] == 1
    for name in (str(batch), f".{batch}.crc"):
        (checkpoint / "commits" / name).unlink(missing_ok=True)
    with RedisStore(redis_server.url, processor.name) as store:  # of a batch at work there is no snapshot yet
        snapshot_store(REDIS, processor.name, store).clear()
    feed(2)
    processor.launch()
    eventually(lambda: batch in ends(), seconds=2 * MINUTE_S, what="it is committed again")
    assert ends()[batch] == 2
    processor.terminate()
    assert processor.status() == 0


def test_a_query_goes_on_from_no_checkpoint_of_other_partitions_though_redis_has_lost_who_folded_last(
    start: Start, kafka: KafkaBroker, redis_server: RedisServer, tmp_path: Path
) -> None:
    processor = start(launch=False, BETTONG_SCHEDULE="micro-batch")
    processor.prepare()
    planned = plan(load(processor.command.environment["BETTONG_APPLICATION"]))
    where = locations_of(
        kafka.connection,
        redis_server.connection,
        state_dir=tmp_path / "state",
        frame_bytes_max=read(ProcessorSettings, {"application": "app.py"}).frame_bytes_max,
    )
    topic = stage_topic(processor.name, "payments")
    with PartsAtRest(planned, where) as parts:
        with LogAdmin(kafka.bootstrap) as admin:
            admin.create_topics(
                planned.topics,
                partitions=PARTITIONS + 1,
                replication=1,
                frame_bytes_max=where.frame_bytes_max,
            )
        repartitioning_of(planned, where, parts, on_step=lambda *_: None).change(PARTITIONS)
        parts.store.ask(
            "forgetting who folded", lambda client: client.delete(parts.store.key("lead", "folded"))
        )
    before = tmp_path / "checkpoint" / processor.name
    for name in ("offsets", "commits"):
        (before / name).mkdir(parents=True)
        offsets = {topic: {str(number): 0 for number in range(PARTITIONS + 1)}}
        lines = ["v1", "{}"] + ([json.dumps(offsets)] if name == "offsets" else [])
        (before / name / "0").write_text("\n".join(lines))
    (before / "metadata").write_text(json.dumps({"id": "3c5d0d7e-1c1e-4a34-b5a6-3a5a1f3f5d6e"}))
    processor.launch()
    committed = before / "generation-1" / "commits"
    eventually(lambda: list(committed.glob("[0-9]*")), seconds=2 * MINUTE_S, what="a batch is committed")
    assert [each.name for each in before.iterdir()] == ["generation-1"]
    processor.terminate()
    assert processor.status() == 0


@pytest.fixture(params=[REDIS, pytest.param(f"s3://{BUCKET}/clean", marks=pytest.mark.long)])
def snapshots_url(request: pytest.FixtureRequest) -> str:
    """Where snapshots are kept."""
    where = str(request.param)
    if where != REDIS:
        request.getfixturevalue("s3_server")
    return where


def test_a_clean_stop_saves_all_states_and_a_new_start_folds_nothing_again(
    start: Start, kafka: KafkaBroker, redis_server: RedisServer, snapshots_url: str, tmp_path: Path
) -> None:
    """Nor with a checkpoint that is older than the states."""
    processor = start(SUMS, BETTONG_SCHEDULE="micro-batch", BETTONG_SNAPSHOTS=snapshots_url)
    eventually(processor.answers, seconds=2 * MINUTE_S, what="it runs")
    topic = stage_topic(processor.name, "payments")

    def fed(first: int) -> None:
        """One frame a partition: no batch comes behind its batch."""
        with LogWriter(kafka.bootstrap, frame_bytes_max=1024 * 1024, buffer_bytes_max=1 << 24) as writer:
            for partition in range(PARTITIONS):
                writer.append(
                    TopicPartition(topic, partition), payments_frame(processor, first), lambda _: None
                )
            writer.flush(30)

    def folded() -> set[str]:
        with RedisStore(redis_server.url, processor.name) as store:
            return {each[metrics.OFFSET.name] for each in LiveMetrics(store).partitions().values()}

    fed(1)
    eventually(lambda: folded() == {"1"}, seconds=MINUTE_S)
    processor.terminate()
    assert processor.status() == 0
    with RedisStore(redis_server.url, processor.name) as store:
        snapshots = snapshot_store(snapshots_url, processor.name, store)
        for partition in range(PARTITIONS):
            assert chains(snapshots.increments(PartitionId("payments", partition)))[0][-1].offset == 1
    checkpoint, older = tmp_path / "checkpoint" / processor.name, tmp_path / "older"
    shutil.copytree(checkpoint, older)
    processor.launch()
    eventually(processor.answers, seconds=2 * MINUTE_S, what="it runs again")
    with RedisStore(redis_server.url, processor.name) as store:
        found = LiveMetrics(store).partitions().values()
        assert [each[metrics.SNAPSHOT_OFFSET.name] for each in found] == ["1"] * PARTITIONS
    fed(2)
    eventually(lambda: folded() == {"2"}, seconds=2 * MINUTE_S)
    processor.terminate()
    assert processor.status() == 0
    assert "snapshots are newer than the checkpoint" not in processor.logged()
    shutil.rmtree(checkpoint)
    older.rename(checkpoint)
    processor.launch()
    fed(3)
    eventually(lambda: folded() == {"3"}, seconds=2 * MINUTE_S)
    processor.terminate()
    assert processor.status() == 0
    assert "snapshots are newer than the checkpoint" in processor.logged()
    assert "folding the log again" not in processor.logged()


def test_a_stop_ends_the_wait_for_redis(start: Start, tmp_path: Path) -> None:
    with RedisServer(tmp_path / "redis") as away:
        url = away.url
    processor = start(redis=url)
    eventually(lambda: "waiting for Redis" in processor.logged(), seconds=2 * MINUTE_S, what="it says so")
    processor.terminate()
    assert processor.status() == 0


def test_the_resident_schedule_says_what_it_waits_for_and_stops_cleanly(
    start: Start, redis_server: RedisServer
) -> None:
    """Without a task nothing is folded: it says so, and only then that it runs."""
    processor = start(BETTONG_CHECKPOINT="/proc/foo", BETTONG_SPARK_UI="true")
    eventually(processor.answers, seconds=2 * MINUTE_S, what="it runs")
    assert "partitions are assigned" in processor.logged()
    eventually(lambda: processor.metrics().get(metrics.LAG.name) == "0", seconds=MINUTE_S)
    page = spark_page(processor)
    (job,) = slot_jobs(page)
    assert (job["description"], job["status"]) == ("bettong resident slot 0", "RUNNING")
    superseded(processor, redis_server, for_s=SUPERSEDED_S)
    assert 1 < len(slot_jobs(page)) <= 1 + SUPERSEDED_S, "submitted again, but not again and again"
    eventually(lambda: processor.metrics().get(metrics.STATE.name) == "running", seconds=MINUTE_S)
    processor.terminate()
    assert processor.status() == 0
    assert "schedule stopped" in processor.logged()
    assert "Traceback" not in processor.logged()


def spark_page(processor: ProcessorProcess) -> str:
    """The address of Spark's REST API, at the port that the processor's Java serves its page at."""
    assert processor.process is not None
    children = psutil.Process(processor.process.pid).children(recursive=True)
    ports = {
        each.laddr.port
        for child in children
        for each in child.net_connections("tcp")
        if each.status == psutil.CONN_LISTEN
    }
    for port in sorted(ports):
        page = f"http://{LOOPBACK}:{port}/api/v1/applications"
        try:
            with urllib.request.urlopen(page, timeout=5) as answer:
                (application,) = json.load(answer)
        except (OSError, HTTPException, ValueError):
            continue  # what speaks another protocol
        return f"{page}/{application['id']}/jobs"
    raise AssertionError(f"none of {ports} is Spark's page")


def slot_jobs(page: str) -> list[dict[str, object]]:
    """The jobs of slots, by Spark's page."""
    with urllib.request.urlopen(page, timeout=5) as answer:  # noqa: S310 - ours, on this machine
        found = json.load(answer)
    return [job for job in found if str(job.get("description", "")).startswith("bettong resident slot")]


def superseded(processor: ProcessorProcess, redis_server: RedisServer, *, for_s: float) -> None:
    """Another task seems to have taken slot 0's place, for so long: each of ours ends by itself at once."""
    with RedisStore(redis_server.url, processor.name) as store:
        slot = store.key("resident", "0")
        store.ask("superseding", lambda client: client.set(slot, 2**53, px=int(for_s * 1000)))
        eventually(lambda: not store.ask("waiting", lambda client: client.get(slot) == b"%d" % 2**53))


def test_an_application_that_cannot_be_compiled_is_refused_before_anything_runs(start: Start) -> None:
    processor = start(NOT_COMPILABLE)
    assert processor.status() == 3
    assert processor.last_line().startswith("bettong: error: 'add' (")


def test_topics_of_another_number_of_partitions_are_refused(start: Start, kafka: KafkaBroker) -> None:
    processor = start(launch=False, BETTONG_PARTITIONS=str(PARTITIONS + 1))
    processor.prepare()
    with LogAdmin(kafka.bootstrap) as admin:
        planned = plan(load(processor.command.environment["BETTONG_APPLICATION"]))
        admin.create_topics(planned.topics, partitions=PARTITIONS, replication=1, frame_bytes_max=1024 * 1024)
    processor.launch()
    assert processor.status() == 5
    assert f"has {PARTITIONS} partitions, expected {PARTITIONS + 1}" in processor.last_line()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"BETTONG_SPARK_MASTER": "nonsense"}, "BETTONG_SPARK_MASTER=nonsense"),
        ({"BETTONG_SCHEDULE": "micro-batch", "BETTONG_CHECKPOINT": "/proc/foo"}, "BETTONG_CHECKPOINT"),
    ],
    ids=["master", "checkpoint"],
)
def test_settings_that_spark_refuses_are_reported_in_one_line(
    start: Start, settings: dict[str, str], words: str
) -> None:
    processor = start(**settings)
    assert processor.status() == 4
    assert words in processor.last_line()
    assert processor.last_line().startswith("bettong: error: ")
