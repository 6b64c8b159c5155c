"""`local` has the results of `key_by` where these depend on when a window is over: see `simulation/local_runs.py`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

import bettong
from bettong.application.windows.kinds import Ranges
from bettong.testing import CRASH, AppSession, frame
from bettong.testing.running import ReadyApplication
from tests.samples.windows import Amount, Values
from tests.simulation.function_table import FUNCTIONS
from tests.simulation.graphs import Graph, Node
from tests.simulation.local_runs import check_with_local
from tests.simulation.messages import KEYS, SLOTS_PER_KEY, Item
from tests.simulation.open_windows import WindowOptions
from tests.simulation.random_graphs import Case

US = timedelta(microseconds=1)


@dataclass
class Example:
    """`messages`: slot, value and time of each; a frame ends behind those whose numbers are in `cuts`."""

    windows: WindowOptions
    messages: list[tuple[int, int, int]]
    cuts: set[int]
    key: Any = "key"
    out_of_order_ns: int = 0
    behind: WindowOptions | None = None


EXAMPLES = {
    "early results, where the last message of a frame ends a window that emit_empty goes by": Example(
        WindowOptions(Ranges(13, 13, 5, 0), "drop", emit_empty=True, early_ns=40),
        [(8, 1, 3), (8, 5, 43), (8, 13, 46), (8, 1, 49), (8, 5, 49)],
        {0},
        out_of_order_ns=1,
    ),
    "early results, where a message that is out of order ends the window of another key": Example(
        WindowOptions(Ranges(18, 18, 0, 0), "drop", early_ns=40),
        [(5, 13, 1), (7, 13, 1), (2, 1, 11), (3, 5, 51), (3, 13, 36), (6, 13, 51), (2, 13, 61)],
        {5},
        key=("key", "slot"),
    ),
    "the order of messages of which one is older than the watermark and in time for its windows": Example(
        WindowOptions(Ranges(54, 18, 1, 4), "drop"),
        [(7, 5, 0), (7, 5, 13), (7, 13, 14), (0, 13, 1), (6, 1, 18), (3, 13, 58), (0, 5, 98), (0, 13, 98)],
        {1, 4},
        key=(),
    ),
    "windows of another grid behind, which emit_empty fills": Example(
        WindowOptions(Ranges(14, 7, 0, 0), "drop"),
        [(2, 5, 0), (6, 5, 10), (6, 1, 0), (7, 13, 60), (6, 13, 63), (8, 5, 64)],
        set(),
        key=(),
        out_of_order_ns=25,
        behind=WindowOptions(Ranges(28, 19, 9, 0), "drop", emit_empty=True),
    ),
}


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_local_gives_what_key_by_gives(example: Example) -> None:
    nodes = [
        Node("in", "source", key="slot", message=Item, out_of_order_ns=example.out_of_order_ns),
        Node("keyed", "key_by", ("in",), key=example.key),
        Node("seen", "window", ("keyed",), FUNCTIONS["local_sums"], windows=example.windows),
    ]
    if example.behind is not None:
        nodes.append(Node("again", "window", ("seen",), FUNCTIONS["part_sums"], windows=example.behind))
    nodes.append(Node("out", "sink", (nodes[-1].name,)))
    messages = tuple(
        ("in", Item(KEYS[slot // SLOTS_PER_KEY], slot, value, at)) for slot, value, at in example.messages
    )
    cuts = tuple(number in example.cuts for number in range(len(messages)))
    assert check_with_local(Case(Graph(tuple(nodes)), messages, cuts))


@dataclass
class Kept:
    count: int = 0


@dataclass
class Counted:
    key: bettong.u32
    count: int


def count(amount: Amount, kept: Kept) -> Counted:
    kept.count += 1
    return Counted(amount.key, kept.count)


def test_a_worker_that_has_saved_and_lives_on_combines_as_one_that_is_restored() -> None:
    """One guesses the end of a state too early, the other knows it."""
    app = bettong.Application("meters")
    source = app.source("in", schema=Amount, key="key", event_time="at", out_of_order=60 * US)
    source.stateful(count, state=Kept, name="kept", ttl=50 * US, ttl_clock="event").sink("counts")
    hours = Ranges(100_000_000, 100_000_000, 0, 0)
    source.local("value").window(hours, Values(), name="hours", emit_empty=True).sink("values")
    ready, begin = ReadyApplication(app, compiled=False), 1_000_000
    for other in range(2, 8):  # some lie in another partition
        session = AppSession(ready, partitions=2)
        session.step(frame("in", Amount(1, begin, 1)))
        session.step(frame("in", Amount(1, begin + 100_000, 1)))
        for partition in session._processor.partitions.values():
            partition.save()
        late = begin + 120_000
        session.step(frame("in", Amount(other, late, 1), Amount(1, late, 1), Amount(1, late, 1)))
        session.step(CRASH)  # ReplayError where the two differ
