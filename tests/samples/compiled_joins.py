"""Joins whose function is compiled, of messages with every kind of field that can be: plain Python and compiled."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product
from operator import attrgetter
from typing import Annotated, Any, NamedTuple, get_args

import numpy as np

import bettong
from bettong import Application, Width
from bettong.application.joins.kinds import AsOf, How, JoinKind, Latest, Within, in_window
from bettong.application.lifetime import Lifetime
from bettong.application.plan import Plan, plan
from bettong.application.timers import Clock
from bettong.application.windows.kinds import Ranges, Sessions
from bettong.worker.balance import balance, differences
from bettong.worker.output.framing import OutputRecord
from bettong.worker.partition import PartitionWorker
from bettong.worker.stage_program import StageProgram, program
from bettong.worker.state.join_table import JoinTable
from bettong.worker.state.records import RecordTable
from tests.samples.kept_kernels import kept_kernels
from tests.samples.worker import dead_letters, fold
from tests.simulation.key_joins import join_streams

OUT, LATE = "meters.sink.out", "meters.sink.late"


@dataclass
class Call:
    """`answers`: of which side it is."""

    line: Annotated[str, Width(4)]
    at: int
    answers: bool
    number: int
    price: bettong.f32
    small: bettong.i8
    word: Annotated[str, Width(5)]
    mark: Annotated[bytes, Width(3)] = b""


@dataclass
class Reply:
    large: bettong.u64
    number: int
    line: Annotated[str, Width(4)]
    tag: Annotated[bytes, Width(3)]
    share: float
    is_odd: bool


@dataclass
class Talk:
    """`total` and `words` have less room than some pairs need."""

    line: Annotated[str, Width(4)]
    call: int
    reply: int
    total: bettong.i8
    words: Annotated[str, Width(7)]
    tag: Annotated[bytes, Width(3)]
    price: float
    large: bettong.u64
    is_odd: bool


@bettong.compiled
def calls(call: Call) -> bool:
    return not call.answers


@bettong.compiled
def replies(call: Call) -> bool:
    return call.answers


@bettong.vectorized
def reply(call: Call) -> Reply:
    tag: Any = np.asarray(call.word).view("S5").astype("S3")
    return Reply(
        call.number * 0x1E3779B97F4A7C15, call.number, call.line, tag, call.price / 3, call.small % 2 == 1
    )


@bettong.compiled
def talk(call: Call, reply: Reply) -> Talk | None:
    """Raises for some pairs, gives nothing for others, or what does not fit."""
    chance = (7 * call.number + 11 * reply.number) % 23
    if chance == 7:
        return None
    if chance == 3:
        raise ValueError("no talk")
    share = 400 // (chance - 5) if chance != 5 else 0
    total = call.small + share
    words = call.word + call.line if chance % 3 else call.word
    price = call.price + reply.share
    return Talk(
        call.line, call.number, reply.number, total, words, reply.tag, price, reply.large, reply.is_odd
    )


def is_over(reply: Reply) -> bool:
    """Whether it deletes. Raises for some."""
    if reply.number % 11 == 6:
        raise ValueError("who knows")
    return reply.number % 3 == 0


@bettong.compiled
def meet(call: Call | None, reply: Reply | None) -> Talk | None:
    """The same where one of them may be missing: likewise."""
    if call is None:
        if reply is None or reply.number % 7 == 3:
            return None
        if reply.number % 5 == 1:
            raise ValueError("no call")
        share = 500 // (reply.number % 5 + 1)
        return Talk(
            reply.line, -1, reply.number, share, "", reply.tag, reply.share, reply.large, reply.is_odd
        )
    if reply is None:
        if call.number % 6 == 2:
            raise ValueError("no reply")
        words = call.word + call.line if call.number % 3 else call.word
        return Talk(call.line, call.number, -1, 2 * call.small, words, call.mark, call.price, 0, call.answers)
    return talk(call, reply)


@bettong.compiled
def twice(one: Call, other: Call) -> Talk:
    return Talk(one.line, one.number, other.number, 0, "", b"", one.price, 0, one.answers)


class Join(NamedTuple):
    """Which one, and what becomes of messages alone, and of a table's after a time."""

    kind: JoinKind
    how: How = "inner"
    lifetime: Lifetime | None = None


WITHIN = [
    Join(Within(*bounds), how)
    for bounds, how in product(((-5, 7), (0, 0), (-20, -8), (3, 30), (-60, 60)), get_args(How))
]
WINDOWS = [
    Join(in_window("join", Ranges(20, 20, 0, 0))),
    Join(in_window("join", Ranges(15, 15, 4, 6)), "outer"),
    Join(in_window("join", Ranges(30, 10, 3, 0))),
    Join(in_window("join", Ranges(25, 10, 0, 5)), "left"),
    Join(in_window("join", Ranges(12, 8, 0, 0)), "outer"),
    Join(in_window("join", Sessions(9, 0))),
    Join(in_window("join", Sessions(14, 5)), "outer"),
    Join(in_window("join", Sessions(5, 0)), "right"),
]
# Tables of versions, and of the newest messages.
VERSIONS = [
    Join(AsOf(None)),
    Join(AsOf(None), "left"),
    Join(AsOf(0), "left"),
    Join(AsOf(12)),
    Join(AsOf(25), "left"),
]
NEWEST = [
    Join(Latest()),
    Join(Latest(is_over), "left"),
    Join(Latest(is_over)),
    Join(Latest(attrgetter("is_odd"), "is_odd"), "left"),
]
_FOR_A_WHILE = Lifetime(40, Clock.LOG)
AGEING = [
    Join(Latest(), "left", _FOR_A_WHILE),
    Join(Latest(is_over), "inner", _FOR_A_WHILE),
    Join(NEWEST[3].kind, "left", _FOR_A_WHILE),
]


def joined(of: Join, *, sources: int = 1, key: Any = "line", **options: Any) -> Application:
    """Calls and replies, of one source or of two, to `out`; those that are late to `late`."""
    app = Application("meters")
    streams = [app.source(name, schema=Call, key=key, event_time="at") for name in ("in", "other")[:sources]]
    left, right = streams[0].filter(calls), streams[-1].filter(replies).map(reply)
    combine = talk if of.how == "inner" else meet
    node = join_streams(left, right, combine, of.kind, of.how, lifetime=of.lifetime, name="talks", **options)
    node.sink("out")
    if node.join_node.judges_lateness:
        node.late.sink("late")
    return app


@cache
def described(of: Join, sources: int = 1) -> Plan:
    """The plan of such an application."""
    return plan(joined(of, sources=sources))


@cache
def ready(of: Join, *, compiled: bool, sources: int = 1) -> StageProgram:
    """Its only stage."""
    (stage,) = described(of, sources).stages
    return program(stage, compiled=compiled, cache=kept_kernels())


def call(line: int, at_ns: int, number: int, *, answers: bool) -> Call:
    """One whose values follow from its number."""
    word = "äbcde"[number % 4 : number % 4 + number % 5]
    price, small, mark = number * 37 % 19 / 7, number * 31 % 255 - 127, b"xyz"[: number % 4]
    return Call(f"l{line}", at_ns, answers, number, price, small, word, mark)


def described_shortly(of: Join) -> str:
    """For the name of a test."""
    return f"{of.kind} {of.how}{'' if of.lifetime is None else ' for a while'}"


def table_of(one: PartitionWorker) -> JoinTable:
    """That of messages within bounds, or of versions."""
    table = records_of(one)
    assert isinstance(table, JoinTable)
    return table


def records_of(one: PartitionWorker) -> RecordTable:
    """That of any of them."""
    table = one.tables["talks"]
    assert isinstance(table, RecordTable)
    return table


def reported(records: list[OutputRecord]) -> tuple[list[OutputRecord], list[tuple[str, bytes, str]]]:
    """What there is in records: of why a result does not fit, the field alone, for Numba has no words of Python's."""
    dead = [
        (
            each.computation,
            each.message,
            each.reason.partition(":")[0] if "field" in each.reason else each.reason,
        )
        for each in dead_letters(records)
    ]
    return [each for each in records if not each.topic.endswith("dead-letters")], dead


def same(python: PartitionWorker, compiled: PartitionWorker, value: bytes) -> list[OutputRecord]:
    """What a record leads to, in both speeds; also what is kept then."""
    found = fold(python, [value])
    assert reported(fold(compiled, [value])) == reported(found)
    assert compiled.counters == python.counters
    assert compiled.accounts.now() == python.accounts.now()
    assert not differences(balance({python.id: python.accounts.now()}, is_at_rest=True))
    assert compiled.keys == python.keys
    for key, state in python.tables["talks"].items():
        assert records_of(compiled).state_of(key) == state
    return found
