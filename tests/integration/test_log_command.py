"""`bettong log` against a real Kafka: what clients have sent, as records and as a test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bettong.application.plan import plan
from bettong.cli.ending import end_well
from bettong.cli.main import app as command_line
from bettong.edges.application_file import load
from bettong.edges.kafka_log import LogAdmin, LogWriter
from bettong.frames.columns import Columns
from bettong.identifiers import TopicPartition
from bettong.ingest.session import Session, SourceRoute
from bettong.local.broker import KafkaBroker
from bettong.testing import case_from, read_log, run
from bettong.topics import stage_topic
from bettong.v1.ingest_pb2 import Hello, IngestFrame
from tests.integration.log_parts import FRAME_BYTES_MAX

PARTITIONS = 3
BEGIN_NS = 1_795_485_600 * 10**9  # 24 November 2026, 02:00 UTC
PROGRAM = """
from dataclasses import dataclass
import bettong

@dataclass
class Payment:
    account: str
    amount: int

@dataclass
class Account:
    total: int = 0

def add(payment: Payment, account: Account) -> Payment:
    account.total += payment.amount
    return Payment(payment.account, account.total)

app = bettong.Application({name!r})
app.source("payments", schema=Payment, key="account").stateful(add, state=Account).sink("totals")
"""


def test_what_clients_have_sent_is_printed_as_records_and_as_a_test(
    kafka: KafkaBroker, unique_name: Callable[..., str], tmp_path: Path, reported: Callable[[], str]
) -> None:
    file = tmp_path / "payments.py"
    file.write_text(PROGRAM.format(name=unique_name("log")))
    app = load(str(file))
    planned = plan(app)
    (source,) = planned.sources
    topic = stage_topic(planned.application, "payments")
    with LogAdmin(kafka.bootstrap) as admin:
        admin.create_topics([topic], partitions=PARTITIONS, replication=1, frame_bytes_max=FRAME_BYTES_MAX)
    session = Session(
        SourceRoute(source, topic, "dead", PARTITIONS, FRAME_BYTES_MAX),
        Hello(source="payments", stream="x"),
        [-1] * PARTITIONS,
    )
    writer = LogWriter(kafka.bootstrap, frame_bytes_max=FRAME_BYTES_MAX, buffer_bytes_max=10**6)
    for number in range(4):
        messages = [source.schema.message(account, number) for account in ("ann", "bob", "cem")]
        columns = Columns.of_messages(source.schema, messages).payload()
        now_ns = BEGIN_NS + number * 10**9
        for each in session.take(IngestFrame(sequence=number + 1, columns=columns), 0, now_ns).appends:
            writer.append(TopicPartition(each.topic, each.partition), each.value, lambda _: None)
    writer.close(10)

    def printed(*arguments: str) -> str:
        code = end_well(
            command_line, ["log", str(file), *arguments, "--kafka", kafka.bootstrap], name="bettong"
        )
        text = reported()
        assert code == 0, text
        return text

    night = tmp_path / "night.jsonl"
    night.write_text(printed())
    outcome = run(app, case_from(app, read_log(night)))
    assert outcome.states["add"] == {name: {"total": 6} for name in ("ann", "bob", "cem")}
    night.write_text(printed("--since", "2026-11-24T02:00:02", "--until", "2026-11-24T02:00:03"))
    outcome = run(app, case_from(app, read_log(night)))
    assert outcome.states["add"] == {name: {"total": 2} for name in ("ann", "bob", "cem")}
    test = printed("--key", "ann", "--test", "--since", "2026-11-24T02:00:02")
    assert [line.strip() for line in test.splitlines() if "Payment(" in line] == [
        f"frame('payments', Payment(account='ann', amount={number}), client='x')," for number in (2, 3)
    ]
    compile(test, "test_pasted.py", "exec")


def test_a_stage_that_is_not_there_is_refused(tmp_path: Path, reported: Callable[[], str]) -> None:
    file = tmp_path / "payments.py"
    file.write_text(PROGRAM.format(name="payments"))
    assert end_well(command_line, ["log", str(file), "--stage", "none"], name="bettong") == 2
    assert "there is no such stage" in reported()
