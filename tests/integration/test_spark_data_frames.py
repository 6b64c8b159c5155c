"""`bettong.spark` against a real Kafka, a real Redis and a real Spark: states, results, and results as they come."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import bettong.spark
from bettong.edges.application_file import load
from bettong.edges.exclusion_log import ExclusionLog
from bettong.edges.kafka_log import LogAdmin
from bettong.errors import (
    ApplicationError,
    LocalError,
    LogError,
    LogTruncatedError,
    SnapshotError,
)
from bettong.identifiers import PartitionId
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from bettong.testing import IDLE
from bettong.topics import stage_topic
from bettong.worker.exclusions import Exclusion
from bettong.worker.output.numbering import PARTS_MAX
from examples.query_states import top_accounts, write
from tests.integration.delta_lake import delta_jars, delta_options
from tests.integration.log_parts import FRAME_BYTES_MAX, delete_below
from tests.integration.recorded_run import BEGIN, PARTITIONS, RecordedRun
from tests.integration.spark_sessions import spark_session
from tests.samples.page_code import FENCE

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
NUMBERING = ["_origin", "_sequence", "_index"]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session as docs/spark.md makes it, with Delta Lake where that is at hand."""
    scratch = tmp_path_factory.mktemp("spark")
    jars = [bettong.spark.connector_jars(), *map(str, delta_jars())]
    options = {"spark.jars": ",".join(jars), "spark.sql.warehouse.dir": str(scratch / "warehouse")}
    options |= delta_options() if delta_jars() else {}
    with spark_session(scratch, options) as session:
        yield session


@pytest.fixture(scope="module")
def world(
    kafka: KafkaBroker,
    redis_server: RedisServer,
    unique_name: Callable[..., str],
    tmp_path_factory: pytest.TempPathFactory,
) -> RecordedRun:
    found = RecordedRun(
        unique_name("spark"), tmp_path_factory.mktemp("world") / "hello.py", kafka, redis_server
    )
    found.make_topics()
    found.run(found.payments(60))
    return found


@pytest.fixture
def other(
    kafka: KafkaBroker, redis_server: RedisServer, unique_name: Callable[..., str], tmp_path: Path
) -> RecordedRun:
    """One that has not run yet."""
    name = unique_name("spark")
    return RecordedRun(name, tmp_path / f"{name}.py", kafka, redis_server)


def messages(frame: DataFrame) -> Counter[str]:
    """The messages of a sink's rows, as texts."""
    own = [name for name in frame.columns if not name.startswith("_")]
    return Counter(str(tuple(row)) for row in frame.select(*own).collect())


def expected(results: list[Any]) -> Counter[str]:
    """The same of what `bettong.testing.run` gives."""
    return Counter(
        str(
            tuple(naive(each) for each in vars(result).values())
            if not isinstance(result, bytes)
            else (result,)
        )
        for result in results
    )


def naive(value: object) -> object:
    """As Spark's rows have it: a time of this machine's zone."""
    return value.astimezone().replace(tzinfo=None) if isinstance(value, datetime) else value


def test_states_are_those_that_the_application_has(spark: SparkSession, world: RecordedRun) -> None:
    accounts = bettong.spark.state(world.app, spark, "add", **world.where)
    assert dict(accounts.dtypes) == {
        "account": "string",
        "total": "double",
        "last": "timestamp",
        "_partition": "int",
        "_offset": "bigint",
    }
    found = {row.account: (row.total, row.last) for row in accounts.collect()}
    shown = world.outcome.states["add"]
    assert {account: total for account, (total, _) in found.items()} == {
        account: state["total"] for account, state in shown.items()
    }
    times = {result.account: result.last for result in world.outcome.outputs["totals"]}
    assert all(found[account][1] > naive(last) for account, last in times.items() if last is not None)
    assert {row._partition for row in accounts.collect()} == set(range(PARTITIONS))
    # A set is no type of a schema: such a state is JSON; and so is any, where that is asked for.
    for computation, as_json in (("visit", False), ("add", True)):
        states = bettong.spark.state(world.app, spark, computation, as_json=as_json, **world.where)
        key = "shop" if computation == "visit" else "account"
        assert {row[key]: json.loads(row.state) for row in states.collect()} == world.outcome.states[
            computation
        ]


def test_a_batch_gives_what_the_application_gave(spark: SparkSession, world: RecordedRun) -> None:
    results = bettong.spark.batch(world.app, spark, **world.where)
    assert sorted(results) == ["all", "lines", "totals", "visits"]
    for sink in ("totals", "visits", "lines"):
        assert messages(results[sink]) == expected(world.outcome.outputs[sink])
    kinds = Counter(row.type for row in results["all"].collect())
    assert kinds == {
        "Total": len(world.outcome.outputs["totals"]),
        "Visited": len(world.outcome.outputs["visits"]),
    }
    assert dict(results["visits"].dtypes)["accounts"] == "array<string>"
    totals = results["totals"].orderBy("_partition", "_sequence", "_index").collect()
    for account, state in world.outcome.states["add"].items():
        assert [row.total for row in totals if row.account == account][-1] == state["total"]


def test_windows_of_event_time_are_folded_alike(
    spark: SparkSession,
    kafka: KafkaBroker,
    redis_server: RedisServer,
    unique_name: Callable[..., str],
    tmp_path: Path,
) -> None:
    """Two stages, of which the second waits for the watermarks of the first."""
    source = (ROOT / "examples" / "visits.py").read_text()
    visits = RecordedRun(
        unique_name("visits"),
        tmp_path / "visits.py",
        kafka,
        redis_server,
        source=source.replace('Application("visits")', "Application({name!r})"),
    )
    visits.make_topics()
    click, chance = visits.plan.sources[0].schema.message, random.Random(7)
    at = int(BEGIN.timestamp()) * 1_000_000_000
    clicks = [
        click(f"person-{chance.randrange(8)}", f"/{chance.randrange(4)}", at + minute * 60_000_000_000)
        for minute in range(0, 900, 4)
    ]
    visits.run([*(("clicks", clicks[start : start + 9]) for start in range(0, len(clicks), 9)), IDLE])
    results = bettong.spark.batch(visits.app, spark, **visits.where)
    for sink, found in results.items():
        assert len(visits.outcome.outputs[sink]) > 20
        assert messages(found) == expected(visits.outcome.outputs[sink])
    computation, held = next((name, held) for name, held in visits.outcome.states.items() if held)
    states = bettong.spark.state(visits.app, spark, computation, **visits.where).collect()
    assert {row[0]: json.loads(row.state) for row in states} == held


def test_a_stream_gives_what_the_batch_gives_once_repetitions_are_dropped(
    spark: SparkSession, world: RecordedRun, tmp_path: Path
) -> None:
    came = bettong.spark.stream(world.app, spark, "totals", **world.where)
    batch = bettong.spark.batch(world.app, spark, sinks=["totals"], **world.where)["totals"]
    assert came.isStreaming
    assert came.dtypes == batch.dtypes
    for name, frame in (("every", came), ("once", came.dropDuplicates(NUMBERING))):
        query = (
            frame.writeStream.format("memory")
            .queryName(name)
            .option("checkpointLocation", str(tmp_path / name))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)
    every, once = spark.table("every").collect(), spark.table("once").collect()
    assert len(every) > len(once), "nothing came twice, so nothing is shown"
    assert set(map(str, every)) == set(map(str, once))
    assert Counter(map(str, once)) == Counter(map(str, batch.collect()))


def test_the_example_asks_spark_for_the_accounts_that_hold_most(
    spark: SparkSession, world: RecordedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BETTONG_KAFKA", world.kafka.bootstrap)
    monkeypatch.setenv("BETTONG_REDIS", world.redis.url)
    monkeypatch.chdir(tmp_path)
    write(str(world.app), tmp_path, spark)
    found = [(row.account, row.total) for row in top_accounts(tmp_path, spark).collect()]
    shown = [(account, state["total"]) for account, state in world.outcome.states["add"].items()]
    assert found == sorted(shown, key=lambda each: (-each[1], each[0]))[:3]


@pytest.mark.skipif(not delta_jars(), reason="Delta Lake's jars, see docs/spark.md, are not on this machine")
def test_the_example_keeps_versions_of_its_tables_in_delta_lake(
    spark: SparkSession, world: RecordedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BETTONG_KAFKA", world.kafka.bootstrap)
    monkeypatch.setenv("BETTONG_REDIS", world.redis.url)
    monkeypatch.chdir(tmp_path)
    write(str(world.app), tmp_path, spark)
    expected = top_accounts(tmp_path, spark).collect()
    for _ in range(2):
        write(str(world.app), tmp_path / "delta", spark, "delta")
    assert top_accounts(tmp_path / "delta", spark, "delta").collect() == expected
    history = spark.sql(f"DESCRIBE HISTORY delta.`{tmp_path}/delta/totals`").collect()
    assert sorted(each.version for each in history) == [0, 1]


def test_what_the_processor_left_out_is_left_out(spark: SparkSession, other: RecordedRun) -> None:
    other.make_topics()
    other.run(other.payments(6))

    def found() -> set[tuple[object, ...]]:
        totals = bettong.spark.batch(other.app, spark, sinks=["totals"], **other.where)["totals"]
        return {(row.account, row._partition, row._sequence) for row in totals.collect()}

    whole = found()
    log = ExclusionLog(other.kafka.bootstrap, other.name, frame_bytes_max=FRAME_BYTES_MAX)
    for partition in range(PARTITIONS):
        # The first record of a client opens its stream, and each record is there twice.
        log.append(PartitionId("payments", partition), Exclusion(2, record="a worker died of it"))
    log.close()
    left_out = {each for each in whole if each[2] == (2 + 1) * PARTS_MAX}
    assert len(left_out) >= PARTITIONS
    assert found() == whole - left_out


def test_unknown_names_are_refused_with_those_there_are(spark: SparkSession, world: RecordedRun) -> None:
    with pytest.raises(
        ApplicationError, match="has no computation 'sum' that keeps states; give one of 'add', 'vis"
    ):
        bettong.spark.state(world.app, spark, "sum", **world.where)
    with pytest.raises(
        ApplicationError, match="has several computations that keep states: give one of 'add'"
    ):
        bettong.spark.state(world.app, spark, **world.where)
    for ask in (
        lambda: bettong.spark.batch(world.app, spark, sinks=["sums"], **world.where),
        lambda: bettong.spark.stream(world.app, spark, "sums", **world.where),
    ):
        with pytest.raises(ApplicationError, match="has no sink 'sums'; give one of 'totals', 'lines'"):
            ask()
    with pytest.raises(ApplicationError, match="expected the path of the application's file"):
        bettong.spark.state(load(str(world.app)), spark, **world.where)  # type: ignore[arg-type]


def test_an_application_that_has_not_run_there_is_refused(
    spark: SparkSession, other: RecordedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    for ask in (
        lambda: bettong.spark.state(other.app, spark, "add", **other.where),
        lambda: bettong.spark.batch(other.app, spark, **other.where),
        lambda: bettong.spark.stream(other.app, spark, "totals", **other.where),
    ):
        with pytest.raises(LogError, match=rf"has no topic {other.name}\.\S+: \S+ has not run there; give"):
            ask()
    monkeypatch.delenv("BETTONG_KAFKA", raising=False)
    with pytest.raises(LocalError, match="nothing runs in"):
        bettong.spark.state(other.app, spark, "add", directory=other.where["directory"])


def test_states_that_nobody_has_saved_are_refused(spark: SparkSession, other: RecordedRun) -> None:
    other.make_topics()
    with pytest.raises(SnapshotError, match=r"holds no snapshot of stage 'payments' .* saved none yet"):
        bettong.spark.state(other.app, spark, "add", **other.where)


def test_a_log_that_was_trimmed_is_refused(spark: SparkSession, other: RecordedRun) -> None:
    other.make_topics()
    other.run(other.payments(6))
    topic = stage_topic(other.name, "payments")
    with LogAdmin(other.kafka.bootstrap) as admin:
        partition = max(admin.ends([topic]).items(), key=lambda each: each[1])[0].partition
    delete_below(other.kafka, topic, partition, 1)
    with pytest.raises(
        LogTruncatedError, match=rf"{topic}/{partition} begins at offset 1: .*bettong\.spark\.stream"
    ):
        bettong.spark.batch(other.app, spark, **other.where)


def test_a_log_that_another_version_has_written_is_refused(spark: SparkSession, other: RecordedRun) -> None:
    other.make_topics()
    other.run(other.payments(6))
    changed = other.app.with_name("changed.py")
    changed.write_text(other.app.read_text().replace("amount: float", "amount: int"))
    totals = bettong.spark.batch(changed, spark, sinks=["totals"], **other.where)["totals"]
    with pytest.raises(
        PySparkException, match="another version of it has written them; give that version's file"
    ):
        totals.collect()


def test_the_code_of_the_page_runs(
    spark: SparkSession, world: RecordedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BETTONG_KAFKA", world.kafka.bootstrap)
    monkeypatch.setenv("BETTONG_REDIS", world.redis.url)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hello.py").write_text(world.app.read_text())
    names: dict[str, Any] = {}
    for language, code in FENCE.findall((ROOT / "docs" / "spark.md").read_text()):
        assert language in ("python", "sh")
        if language == "python":
            # Spark's Java has a working directory of its own.
            own = code.replace('"lake/', f'"{tmp_path}/lake/')
            exec(compile(own, "docs/spark.md", "exec"), names)  # noqa: S102 - our own page
    query = names["query"]
    assert query.awaitTermination(120)
    written = spark.read.parquet(str(tmp_path / "lake" / "stream"))
    assert messages(written) == expected(world.outcome.outputs["totals"])
    assert names["spark"] is not None
