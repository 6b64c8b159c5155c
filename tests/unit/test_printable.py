"""What messages, keys and errors hold never reaches an operator's terminal as orders."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace

import pytest
from rich.console import Console

from bettong.cli.dead_letters.listing import print_each, print_one, print_reasons
from bettong.cli.ending import complain
from bettong.cli.fitting_tables import print_fitting
from bettong.cli.printable import printable, printable_lines
from bettong.cli.replay import events_table
from bettong.cli.status import partitions_table, services_table, show
from bettong.cli.status_texts import complaints, stuck, summary
from bettong.frames.dead_letter_id import DeadLetterId
from bettong.hot_keys import HotKey
from bettong.identifiers import Origin, PartitionId, SequenceNumber
from bettong.inspection.dead_letters import Found
from bettong.inspection.key_history import Event, StateChange
from bettong.inspection.overview import Overview, PartitionRow
from bettong.inspection.services import ServiceRow
from bettong.v1.frame_pb2 import DeadLetter
from tests.samples.watched_deployment import answers, inspected

CLIPBOARD, CLEARED, C1, BELL, TURNED = (
    "\x1b]52;c;cm0gLXJm\x07",
    "\x1b[2J",
    "\x9b31m",
    "\a",
    "\u202egnp.exe\u2066",
)
EVIL = f"a{CLIPBOARD}{CLEARED}{C1}{BELL}{TURNED}z"
HARMLESS = printable(EVIL)


@pytest.mark.parametrize("order", [CLIPBOARD, CLEARED, C1, BELL, TURNED, "\r", "\x85", "\x7f", "\u2028"])
def test_text_becomes_one_line_or_its_lines_without_orders(order: str) -> None:
    assert printable(f"ä 漢[red]{order}\n").isprintable()
    assert printable(f"ä 漢[red]{order}").startswith("ä 漢[red]")
    assert [line.isprintable() for line in printable_lines(f"a{order}\n b").split("\n")] == [True, True]
    assert printable_lines("a\n b") == "a\n b"


def event() -> Event:
    return Event(
        offset=1,
        origin=Origin(f"orders/{EVIL}"),
        sequence=SequenceNumber(1),
        index=0,
        time_ns=10**18,
        verdict="taken",
        message=EVIL,
        steps=(StateChange(EVIL, None, EVIL),),
        outputs=((EVIL, EVIL),),
        failures=((EVIL, "dead-letter", EVIL),),
    )


def row() -> PartitionRow:
    return PartitionRow(
        EVIL, 0, 5, None, 1, 9, None, None, None,
        stalled_s=60.0, watermark_ns=1, watermark_held_by=EVIL, hot_keys=(HotKey(EVIL, 0.9, 0.8),), snapshot_fault=EVIL,
    )  # fmt: skip


def counts() -> Overview:
    of_each = (EVIL,)
    return Overview(
        1, 1, 1, EVIL, 1, 1, None, None,
        shared=of_each, gaps=of_each, left_out=of_each, references=of_each, skews=of_each,
    )  # fmt: skip


@pytest.mark.parametrize(
    "shown",
    [
        lambda to: print_fitting(to, partitions_table([row()], 10**18)),
        lambda to: print_fitting(to, services_table([ServiceRow(EVIL, EVIL, detail=EVIL)], 0.0)),
        lambda to: [to.print(text) for text in (*summary(counts()), *complaints(counts()))],
        lambda to: [to.print(text) for text in stuck([row()])],
        lambda to: to.print(events_table([event()])),
    ],
    ids=["partitions", "services", "counts", "standing still", "history"],
)
def test_tables_and_texts_of_commands_hold_no_orders(shown: Callable[[Console], object]) -> None:
    out = io.StringIO()
    shown(Console(file=out, highlight=False, width=2000))
    assert HARMLESS in out.getvalue()
    assert out.getvalue().replace("\n", "").isprintable(), repr(out.getvalue())


def test_status_with_all_that_it_shows_holds_no_orders() -> None:
    found = answers(20)
    live = {
        f"{name} {EVIL}": dict.fromkeys(record, EVIL) | {"service": record["service"]}
        for name, record in found.live.items()
    }
    records = {
        PartitionId(EVIL, id_.partition): dict.fromkeys(record, EVIL)
        for id_, record in found.partitions.items()
    }
    out = io.StringIO()
    every = dict.fromkeys(("each", "accounts", "computations", "latency", "watermarks", "queues"), True)
    console = Console(file=out, highlight=False, width=200)
    show(inspected(replace(found, live=live, partitions=records)), console, **every)
    assert out.getvalue().replace("\n", "").isprintable(), repr(out.getvalue())


def found() -> Found:
    dead_letter = DeadLetter(
        computation=EVIL,
        reason=f"ValueError: {EVIL}\nand {EVIL}",
        origin=f"orders/{EVIL}",
        traceback=[EVIL],
        message=EVIL.encode(),
    )
    return Found(DeadLetterId(0, 1, 0), 10**18, dead_letter)


@pytest.mark.parametrize(
    "shown",
    [
        lambda: print_one(found(), EVIL, f"{EVIL}\n{EVIL}"),
        lambda: print_reasons([found()], 20, json=False),
        lambda: print_each([found()], {}, 20, None, json=False),
        lambda: complain(f"the message {EVIL} is wrong"),
    ],
    ids=["one", "reasons", "each", "error"],
)
def test_dead_letters_and_errors_hold_no_orders(
    shown: Callable[[], object], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    shown()
    printed = "".join(capsys.readouterr())
    assert HARMLESS in printed
    assert printed.replace("\n", "").isprintable(), repr(printed)


def test_one_dead_letter_keeps_the_lines_of_its_reason_and_message(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_one(found(), "no", '{\n  "a": 1\n}')
    lines = capsys.readouterr().out.splitlines()
    assert f"and {HARMLESS}" in lines
    assert lines[-3:] == ["{", '  "a": 1', "}"]
