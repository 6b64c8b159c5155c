"""`delete_when=` beside `ttl_clock="event"`: a state lives by the messages since it was made, in any frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong import Application
from bettong.application.plan import plan
from bettong.worker.stage_program import StageProgram, program
from tests.samples.event_time import TTL, TTL_NS, Visit, sender_tick, visits
from tests.samples.worker import fold, worker
from tests.simulation.twins import compiled_twin

STAYS, LEAVES, FAILS = range(3)


@dataclass
class Stay:
    place: int = 0


def stay(visit: Visit, kept: Stay) -> Visit | None:
    kept.place = visit.place
    if visit.place == FAILS:
        raise ValueError("fails")
    return visit if visit.place == STAYS else None


def is_left(kept: Stay) -> bool:
    return kept.place == LEAVES


def made(speed: str) -> StageProgram:
    visit, leaves = (compiled_twin(stay), compiled_twin(is_left)) if speed == "compiled" else (stay, is_left)
    app = Application("meters")
    app.source("visits", schema=Visit, key="who", event_time="at").stateful(
        visit, state=Stay, name="stays", ttl=TTL, ttl_clock="event", delete_when=leaves
    ).sink("out")
    return program(plan(app).stages[0], compiled=True)


PROGRAMS = {speed: made(speed) for speed in ("python", "compiled")}
VISITS = st.lists(
    st.builds(Visit, st.integers(0, 2), st.sampled_from([STAYS, STAYS, LEAVES, FAILS]), st.integers(1, 60)),
    max_size=25,
)


def split(found: list[Visit], cuts: Iterable[int]) -> Iterator[list[Visit]]:
    rows = sorted({0, len(found), *(each % (len(found) + 1) for each in cuts)})
    return (found[start:stop] for start, stop in pairwise(rows))


@pytest.mark.parametrize("speed", PROGRAMS)
@given(found=VISITS, cuts=st.lists(st.integers(0, 25)), crashes=st.booleans())
def test_a_state_lives_by_the_messages_since_it_was_made_however_they_are_cut_into_frames(
    speed: str,
    found: list[Visit],
    cuts: list[int],
    crashes: bool,  # noqa: FBT001 - hypothesis fills it in
) -> None:
    newest_ns = dict[int, int]()
    for each in found:
        newest_ns[each.who] = max(newest_ns.get(each.who, 0), each.at)
        if each.place == LEAVES:
            del newest_ns[each.who]
    one = worker(PROGRAMS[speed])
    for number, part in enumerate(split(found, cuts), 1):
        fold(one, [visits("a", number, part, log_ns=1, watermark_ns=0)])
        if crashes:
            again = worker(PROGRAMS[speed])
            again.restore(one.snapshot())
            one = again
    for watermark_ns in range(TTL_NS, TTL_NS + 62, 4):
        fold(one, [sender_tick(1, a=watermark_ns)])
        expected = {key for key, at_ns in newest_ns.items() if at_ns + TTL_NS > watermark_ns}
        assert {key for key, _ in one.tables["stays"].items()} == expected
