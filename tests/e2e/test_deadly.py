"""Messages that kill the worker, with every service a process: dead letters; all others have their results, once."""

import json
import re
import sys
import time
from collections import defaultdict
from pathlib import Path

import pytest

from bettong.application.plan import plan
from bettong.cli.ending import end_well
from bettong.cli.main import app as command_line
from bettong.client.sender import Sender
from bettong.config.processor import Schedule
from bettong.edges.application_file import load
from bettong.edges.exclusion_log import ExclusionLog
from bettong.edges.kafka_log import LogAdmin, LogReader
from bettong.frames.frame import decode
from bettong.identifiers import PartitionId
from bettong.local.options import SuiteOptions
from bettong.local.record import SuiteRecord
from bettong.local.suite import Suite
from bettong.topics import dead_letter_topic, sink_topic, stage_topic
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.stage_program import program
from tests.e2e.deadly import HARMLESS, Number
from tests.waiting import bound_s, eventually

PROGRAM = Path(__file__).with_name("deadly.py")
GROUPS = "abcdefgh"
LIMIT_MS = 1_000
REASONS = {
    1: "killed the worker: signal 11 (SIGSEGV)",
    2: "killed the worker: exit code 7",
    3: "killed the worker: signal 9 (SIGKILL)",
    4: f"took longer than {LIMIT_MS} ms (BETTONG_MESSAGE_MS_MAX)",
    5: "KeyboardInterrupt: why",
    6: "CancelledError: why",
}
# From when it was sent: deaths, and new workers. It takes 1 to 2 s (micro-batch) and 7 s (resident).
NAMED_S_MAX = 10.0
LEFT_OUT = re.compile("partitions recently skipped what killed workers: ")
NAMED = re.compile(
    LEFT_OUT.pattern + r".*numbers/\d: offset \d+, origin numbers/feed, sequence \d+,"
    r" index (?P<index>\d+): killed the worker: signal 11 \(SIGSEGV\)"
)
PARTITIONS = 4
FRAME_BYTES_MAX = 4 * 1024 * 1024

# Frames by topic, partition, origin and sequence.
Output = dict[tuple[str, int, str, int], bytes]


def lines(folder: Path, sink: str) -> list[dict[str, object]]:
    """The results of a sink so far."""
    files = sorted((folder / "results" / sink).glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_bytes().splitlines()]


def totals(folder: Path) -> dict[str, list[tuple[object, object]]]:
    """Of each group, in order."""
    found = defaultdict(list)
    for each in lines(folder, "totals"):
        found[str(each["group"])].append((each["total"], each["seen"]))
    return found


def output_of(record: SuiteRecord) -> tuple[Output, Output]:
    """The frames of results and dead letters as they lie in the log, and those of a fold from its beginning."""
    planned = plan(load(str(PROGRAM)))
    (stage,) = planned.stages
    source = stage_topic(planned.application, stage.name)
    topics = [source, sink_topic(planned.application, "totals"), dead_letter_topic(planned.application)]
    with LogAdmin(record.kafka_connection) as admin:
        ends = admin.ends(topics)
    exclusions = ExclusionLog(record.kafka_connection, planned.application, frame_bytes_max=FRAME_BYTES_MAX)
    exclusions.refresh()
    exclusions.close()
    ready = program(stage, compiled=False)
    workers = [
        PartitionWorker(ready, Assignment(planned.application, each, PARTITIONS, FRAME_BYTES_MAX))
        for each in range(PARTITIONS)
    ]
    for number, worker in enumerate(workers):
        worker.exclusions = exclusions.known(PartitionId(stage.name, number))
    put_out: Output = {}
    again: Output = {}
    left = sum(ends.values())
    with LogReader(
        record.kafka_connection, dict.fromkeys(ends, 0), frame_bytes_max=FRAME_BYTES_MAX
    ) as reader:
        deadline_s = time.monotonic() + 30
        while left:
            assert time.monotonic() < deadline_s
            for each in reader.poll(200, 1000):
                left -= 1
                if each.topic != source:
                    keep(put_out, each.topic, each.partition, each.value)
                    continue
                for found in workers[each.partition].fold(each.offset, each.value):
                    keep(again, found.topic, found.partition, found.value)
    return put_out, again


def keep(output: Output, topic: str, partition: int, value: bytes) -> None:
    """A frame that is there twice, as after a death, must be just the same."""
    frame = decode(value)
    assert output.setdefault((topic, partition, frame.origin, frame.sequence), value) == value


def status(folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What the command prints."""
    capsys.readouterr()
    end_well(command_line, ["status", "--dir", str(folder)], name="bettong")
    return capsys.readouterr().out


def named_in_time(folder: Path, capsys: pytest.CaptureFixture[str]) -> re.Match[str]:
    """How the status names the message that was sent just now and kills."""
    begun_s = time.monotonic()
    found = eventually(lambda: NAMED.search(status(folder, capsys)), seconds=60, what="status names it")
    named_s = time.monotonic() - begun_s
    with capsys.disabled():
        sys.stderr.write(f"named {named_s:.1f} s after it was sent\n")
    assert named_s < bound_s(NAMED_S_MAX)
    return found


def options(folder: Path, schedule: Schedule) -> SuiteOptions:
    return SuiteOptions(
        application=str(PROGRAM),
        partitions=PARTITIONS,
        schedule=schedule,
        keep=folder,
        settings={"snapshot_interval_ms": "0", "message_ms_max": str(LIMIT_MS)},
    )


@pytest.mark.timely
@pytest.mark.timeout(600)
@pytest.mark.parametrize("schedule", list(Schedule))
def test_messages_that_kill_are_dead_letters_and_all_others_are_processed_once(
    tmp_path: Path, schedule: Schedule, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "kept"
    monkeypatch.setenv("COLUMNS", "1000")
    wanted: dict[str, list[tuple[object, object]]] = defaultdict(list)
    sums: dict[str, int] = defaultdict(int)
    deeds: dict[tuple[int, int], int] = {}
    with Suite(options(folder, schedule)) as suite:
        with Sender(suite.record.sender, "numbers", "feed") as sender:
            found_name: re.Match[str] | None = None
            for sequence in range(1, 41):
                if sequence == 5:
                    eventually(lambda: len(lines(folder, "totals")) == 4 * 8, seconds=120, what="it runs")
                deed = {5: 1, 12: 2, 19: 3, 26: 4, 30: 5, 35: 6}.get(sequence, 0)
                frame = [Number(group, sequence, 0) for group in GROUPS]
                if deed:
                    frame[sequence % 8] = Number(GROUPS[sequence % 8], sequence, deed)
                    deeds[sequence, sequence % 8] = deed
                for number in frame:
                    if not number.deed:
                        sums[number.group] += number.value
                        wanted[number.group].append((sums[number.group], len(wanted[number.group]) + 1))
                sender.send_messages(frame)
                if sequence == 5:
                    found_name = named_in_time(folder, capsys)
            sender.flush(60)
        eventually(
            lambda: len(lines(folder, "totals")) >= 40 * 8 - len(deeds), seconds=240, what="all the others"
        )
        eventually(
            lambda: len(lines(folder, "dead-letters")) >= len(deeds), seconds=30, what="all dead letters"
        )
        eventually(
            lambda: re.search(r"processor +running", status(folder, capsys)),
            seconds=30,
            what="nothing is held up any more",
        )
        assert LEFT_OUT.search(status(folder, capsys)), (
            "who looks later still finds the last one of each partition"
        )
        monkeypatch.setenv(HARMLESS, "1")
        put_out, again = output_of(suite.record)
    assert put_out == again
    assert totals(folder) == wanted
    found = lines(folder, "dead-letters")
    assert sorted((str(each["computation"]), str(each["reason"])) for each in found) == sorted(
        ("add", REASONS[deed]) for deed in deeds.values()
    )
    assert sorted(json.loads(str(each["message"]))["deed"] for each in found) == sorted(deeds.values())
    assert all(each["origin"] == "numbers/feed" for each in found)
    assert {each["sequence"] for each in found} == {sequence for sequence, _ in deeds}
    (first,) = (each for each in found if each["sequence"] == 5)
    assert found_name is not None
    assert str(first["index"]) == found_name["index"]
