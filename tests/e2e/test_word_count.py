"""Word count on the whole suite: two stages, the second keyed by word; under both schedules in turn, killed, traced."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from bettong import metrics
from bettong.chaos.spec import OtherProcess
from bettong.chaos.victims import processes
from bettong.cli.ending import end_well
from bettong.cli.main import app as command_line
from bettong.client.sender import Sender
from bettong.config.processor import Schedule
from bettong.inspection.overview import overview, partition_rows
from bettong.latency_parts import PARTS
from bettong.local.inspecting import SuiteWatch
from bettong.services import PROCESSOR, SERVICES
from tests.e2e import traced
from tests.e2e.conftest import PARTITIONS, ROOT, RunningSuite, StartSuite
from tests.samples.top_screen import pages_of
from tests.servers.collector import collecting
from tests.servers.scraped import Scraped
from tests.waiting import eventually

APPLICATION = "examples/word_count.py"
TEXTS = [Path(ROOT / name).read_text() for name in ("LICENSE", "README.md", "docs/delivery.md")]
LINES = [line for text in TEXTS for line in text.splitlines()]
FRAME_LINES = 50
SETTINGS = {"spark_master": "local[2]"}


@pytest.mark.timeout(900)
def test_word_count_equals_a_plain_counter_under_each_schedule_when_killed_traced_and_not_measured(
    start_suite: StartSuite,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One log: the resident schedule with its Python workers and its driver killed, micro-batches, the resident one.

    A sampled frame has one trace from its client to its sink; where nothing is measured there is none.
    """
    kept, quarter = tmp_path / "kept", len(LINES) // 4
    with collecting() as (collector, endpoint):
        monkeypatch.setenv("BETTONG_CLIENT_TRACE_ENDPOINT", endpoint)
        monkeypatch.setenv("BETTONG_CLIENT_TRACE_RATIO", str(traced.RATIO))
        settings = {**SETTINGS, "trace_endpoint": endpoint, "trace_ratio": str(traced.RATIO)}
        scraped = {**settings, "metrics_listen": "127.0.0.1:0"}
        running = start_suite(APPLICATION, schedule=Schedule.RESIDENT, keep=kept, settings=scraped)
        traced.feed_sampled(running, collector, "feed-resident")
        send(running, LINES[:quarter])
        running.settle()
        scraped_metrics(running)
        shown_alike(kept, capsys)
        killed(running, quarter)
        finished(running)
        running = start_suite(APPLICATION, schedule=Schedule.MICRO_BATCH, keep=kept, settings=scraped)
        traced.feed_sampled(running, collector, "feed-micro-batch")
        send(running, LINES[quarter : 2 * quarter])
        finished(running, scraped_metrics)
        monkeypatch.delenv("BETTONG_CLIENT_TRACE_ENDPOINT")
        collector.spans.clear()
        running = start_suite(APPLICATION, keep=kept, settings={**settings, "measures": "off"})
        traced.feed(running, "feed-off")
        send(running, LINES[-FRAME_LINES:])
        found = finished(running, traced.nothing_is_measured)
        assert not collector.spans
    for word, lines in found.items():
        reported = [json.loads(line) for line in lines]
        right = [{"word": word, "total": total} for total in range(1, len(lines) + 1)]
        assert reported == right, "grows by one, in order"
    seen = {word: len(lines) for word, lines in found.items()}
    assert seen == Counter(word for line in (*LINES, *3 * traced.LINES) for word in line.lower().split())


def killed(running: RunningSuite, quarter: int) -> None:
    """Sends all lines but the last frame; kills the Python workers, and then the driver, while there is work."""
    before = running.folded()
    send(running, LINES[2 * quarter : 3 * quarter])
    workers = victims(running, OtherProcess.WORKER)
    assert len(workers) >= 2, "one for each slot"
    for worker in workers:
        worker.kill()
    send(running, LINES[3 * quarter : 3 * quarter + quarter // 2])
    eventually(
        lambda: running.folded() > before + quarter,
        seconds=60,
        what="it goes on without being started again",
    )
    assert running.suite.record.services["processor"].restarts == 0
    (driver,) = victims(running, PROCESSOR.name)
    driver.kill()
    send(running, LINES[3 * quarter + quarter // 2 : -FRAME_LINES])


def send(running: RunningSuite, lines: list[str]) -> None:
    with Sender(running.sender, "lines") as sender:
        for start in range(0, len(lines), FRAME_LINES):
            sender.send_rows([line.encode() for line in lines[start : start + FRAME_LINES]])
        sender.flush(60)


def finished(
    running: RunningSuite, look: Callable[[RunningSuite], None] | None = None
) -> dict[str, list[bytes]]:
    """The results of each word, in order, once all have come. The suite is stopped, and ends well."""
    running.settle()
    if look is not None:
        look(running)
    assert running.sum(metrics.DEAD_LETTERS) == 0
    running.suite.stop()
    assert "Traceback" not in running.suite.record.services["processor"].log.read_text()
    words: dict[str, list[bytes]] = defaultdict(list)
    for line in running.all_bytes_of("counts").splitlines():
        words[json.loads(line)["word"]].append(line)
    return dict(words)


def scraped_metrics(running: RunningSuite) -> None:
    """Each service's endpoint serves what `bettong status` shows."""
    logs = {name: running.suite.record.services[name].log for name in SERVICES}
    found = {name: Scraped.of(log) for name, log in logs.items()}
    addresses = running.suite.record.metrics
    assert set(addresses) == set(SERVICES)
    for name, address in addresses.items():
        assert address in logs[name].read_text(), "what is recorded is what it says itself"
        assert Scraped.at(address)["bettong_state", "running"] == 1
    sender, processor, receiver = (found[name] for name in SERVICES)
    reported = overview(running.metrics.live(), running.metrics.partitions())
    assert sender["bettong_sender_messages_total"] == reported.messages
    assert sender["bettong_sender_sessions"] == 0
    assert receiver["bettong_receiver_messages_total", "counts"] == reported.results
    assert receiver["bettong_receiver_dead_letters_total"] == reported.dead_letters == 0
    # Of this process; the results are counted over restarts.
    assert 0 < receiver["bettong_receiver_latency_seconds_count"] <= reported.results
    parts_add_up(receiver, "counts")
    assert processor["bettong_partition_metrics_readable"] == 1
    for each in found.values():
        assert each["bettong_state", "running"] == 1
        assert 0 <= each["bettong_heartbeat_age_seconds"] < 60
    for row in partition_rows(running.metrics.live(), running.metrics.partitions()):
        labels = (row.stage, str(row.partition))
        assert processor["bettong_partition_offset", *labels] == row.offset
        assert processor["bettong_partition_messages_total", *labels] == row.messages
        assert processor["bettong_partition_lag_records", *labels] == row.lag == 0
    assert processor["bettong_processor_lag_records"] == 0


def parts_add_up(receiver: Scraped, sink: str) -> None:
    """The parts of a latency are of the same results as the latency, and together as long."""
    series, whole = "bettong_receiver_latency_part_seconds", "bettong_receiver_sink_latency_seconds"
    counts = {receiver[f"{series}_count", sink, part] for part in PARTS}
    sums_s = {part: receiver[f"{series}_sum", sink, part] for part in PARTS}
    assert counts == {receiver[f"{whole}_count", sink]}
    assert sum(sums_s.values()) == pytest.approx(receiver[f"{whole}_sum", sink], rel=0.02)
    assert min(sums_s.values()) > 0, f"none of them takes no time: {sums_s}"


def shown_alike(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`bettong top` shows the numbers that `bettong status --json` prints."""
    capsys.readouterr()
    assert end_well(command_line, ["status", "--json", "--dir", str(kept)], name="bettong") == 0
    printed = json.loads(capsys.readouterr().out)
    with SuiteWatch(kept, frame_bytes_max=4_000_000) as watch:
        overview_lines, stages, partitions, dead_letters = pages_of(watch, "1234", size=(200, 40))
    assert "all works" in overview_lines[0]
    total = printed["total"]
    text = " ".join(overview_lines)
    assert f"{total['messages_in']:,} in, {total['results_out']:,} out" in text
    assert f"{total['lag_records']} records" in text
    columns = titles(stages[3])
    for each in printed["stages"]:
        row = next(line.split() for line in stages if line.split()[:1] == [each["stage"]])
        assert row[columns.index("keys")] == f"{each['keys']:,}"
        assert row[columns.index("dead-letters")] == f"{each['dead_letters']:,}" == "0"
        assert row[columns.index("results")] == f"{each['results']:,}"
    columns = titles(partitions[3])
    assert len(printed["partitions"]) == 2 * PARTITIONS
    for each in printed["partitions"]:
        name = f"{each['stage']}/{each['partition']}"
        row = next(line.split() for line in partitions if line.split()[:1] == [name])
        assert row[columns.index("owner")] == str(each["slot"])
        assert row[columns.index("offset")] == f"{each['offset']:,}"
        assert row[columns.index("lag")] == f"{each['lag_records']:,}" == "0"
    assert "no dead letters" in " ".join(dead_letters)


def titles(line: str) -> list[str]:
    """A word for each column, as cells are."""
    return line.replace("▲", "").replace("dead letters", "dead-letters").split()


def victims(running: RunningSuite, target: str) -> list[psutil.Process]:
    return processes(target, running.suite.record.services)
