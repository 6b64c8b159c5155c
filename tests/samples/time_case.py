"""A small case of something that goes by time: what happens in turns of ten seconds, and what must come of it.

Each case is a pipeline of its own, so that one application may hold them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

import bettong
from bettong import Application
from bettong.testing import Reference
from tests.samples.time_pipelines import S_NS, Build, Event, s

TURN_NS = 10 * S_NS

Happening: TypeAlias = "Event | Reference"


@dataclass(frozen=True)
class TimeCase:
    """`turns`: the events of each turn, which begins TURN_NS behind the one before. `lines`: in any order.

    Between events a reference table may get another version.
    """

    name: str
    build: Build
    turns: Sequence[Sequence[Happening]]
    lines: Sequence[str]
    out_of_order_s: float = 0

    def inputs(self, turn: int) -> Iterator[object]:
        """What `run` takes for a turn: its events in one frame, or in several, with changes of tables between."""
        for is_event, group in groupby(self.turns[turn], lambda each: isinstance(each, Event)):
            if is_event:
                yield f"{self.name}-in", list(group)
            else:
                yield from group


def application(cases: Sequence[TimeCase], name: str = "time-cases") -> Application:
    """Each case from a source to a sink of its name."""
    app = bettong.Application(name)
    for case in cases:
        events = app.source(
            f"{case.name}-in", schema=Event, key="key", event_time="at", out_of_order=s(case.out_of_order_s)
        )
        case.build(events).sink(f"{case.name}-out")
    return app
