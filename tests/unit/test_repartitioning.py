"""An application goes on with another number of partitions as if it had always had it: states, times and deliveries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from bettong.testing import RESEND, assert_alike, clock
from bettong.testing.outcome import Outcome
from bettong.testing.running import ReadyApplication
from tests.samples.time_cases import CASES, TURN_NS, TimeCase, application
from tests.samples.time_pipelines import START_NS, Line
from tests.simulation.repartitioned import RepartitionedSession

by_name = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


def turns(case: TimeCase) -> Iterator[list[object]]:
    """What happens in each turn: time passes, and a frame comes."""
    for number, events in enumerate(case.turns):
        frame = [(f"{case.name}-in", list(events))] if events else []
        yield [clock(at=START_NS + number * TURN_NS), *frame]


def outcome(
    ready: ReadyApplication,
    case: TimeCase,
    numbers: Sequence[int | None],
    *,
    first: int,
    resend: bool = False,
) -> Outcome:
    """Of a case whose application is given another number of partitions behind turns that say one."""
    session = RepartitionedSession(ready, partitions=first)
    for turn, partitions in zip(turns(case), [*numbers, *[None] * len(case.turns)], strict=False):
        session.step(*turn)
        if partitions is not None:
            session.repartition(partitions)
            if resend:
                session.step(RESEND)
    return session.finish()


@by_name
@pytest.mark.parametrize("resend", [False, True], ids=["", "resent"])
def test_a_case_gives_its_results_when_partitions_change_behind_every_turn(
    case: TimeCase, *, resend: bool
) -> None:
    ready = ReadyApplication(application([case]), compiled=False)
    found = outcome(ready, case, [8, 2, 5, 1, 3, 4], first=3, resend=resend)
    assert sorted(found.outputs[f"{case.name}-out"], key=str) == sorted(map(Line, case.lines), key=str)
    assert_alike(found, outcome(ready, case, [], first=1))
