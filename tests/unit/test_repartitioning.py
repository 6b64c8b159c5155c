"""An application goes on with another number of partitions as if it had always had it: states, times and deliveries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bettong
from bettong import Width
from bettong.errors import SnapshotError
from bettong.frames.columns import Columns
from bettong.identifiers import PartitionId
from bettong.schema.schema import schema_of
from bettong.testing import RESEND, AppSession, Reference, assert_alike, clock
from bettong.testing.outcome import Outcome
from bettong.testing.running import ReadyApplication
from bettong.v1.ingest_pb2 import IngestFrame
from bettong.v1.snapshot_pb2 import Snapshot
from bettong.worker.repartitioning.states import with_states
from tests.samples.reference_join import Order, Price, app_of
from tests.samples.time_case import TURN_NS, TimeCase, application
from tests.samples.time_cases import CASES
from tests.samples.time_pipelines import S_NS, START_NS, Line, left, windows
from tests.simulation.repartitioned import RepartitionedSession

by_name = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


def turns(case: TimeCase) -> Iterator[list[object]]:
    """The events of each turn: time passes, and frames arrive."""
    for number in range(len(case.turns)):
        yield [clock(at=START_NS + number * TURN_NS), *case.inputs(number)]


def outcome(
    ready: ReadyApplication,
    case: TimeCase,
    numbers: Sequence[int | None],
    *,
    first: int,
    resend: bool = False,
) -> Outcome:
    """A case whose application is repartitioned after each turn that names a number of partitions."""
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


@pytest.mark.parametrize("name", ["compiled", "sessions-compiled", "counts-compiled", "ephemeral-compiled"])
@pytest.mark.parametrize("resend", [False, True], ids=["", "resent"])
def test_windows_in_one_array_are_divided_by_their_keys(name: str, *, resend: bool) -> None:
    case = next(each for each in CASES if each.name == name)
    ready = ReadyApplication(application([case]), compiled=True)
    found = outcome(ready, case, [8, 2, 5], first=3, resend=resend)
    assert sorted(found.outputs[f"{name}-out"], key=str) == sorted(map(Line, case.lines), key=str)
    assert_alike(found, outcome(ready, case, [], first=1))


def test_a_window_that_is_closed_stays_closed_when_partitions_have_rested() -> None:
    case = TimeCase("w", windows("w", bettong.tumbling(timedelta(hours=1))), [], [])
    ready = ReadyApplication(application([case]), compiled=False)
    for change in (None, 2, 5, 1):
        session = RepartitionedSession(ready, partitions=2)
        session.step(clock(at=START_NS), ("w-in", [left(1, 1, 1)]))
        # Time closes the window in the one partition; the other one has nothing due, and no record.
        session.step(clock(at=START_NS + 3700 * S_NS))
        if change is not None:
            session.repartition(change)
        session.step(clock(at=START_NS + 3701 * S_NS), ("w-in", [left(1, 1800, 2)]))
        session.step(clock(at=START_NS + 9000 * S_NS))
        assert session.finish().outputs == {"w-out": [Line("1 from 0 to 3600: 1")]}, change


@dataclass
class Move:
    """Of a player in a game."""

    game: bettong.u32
    player: Annotated[str, Width(8)]
    points: int


@dataclass
class Score:
    points: int = 0


def plain_score(move: Move, kept: Score) -> Move:
    """The points until now."""
    kept.points += move.points
    return Move(move.game, move.player, kept.points)


@bettong.compiled
def score(move: Move, kept: Score) -> Move:
    """The same."""
    kept.points += move.points
    return Move(move.game, move.player, kept.points)


@bettong.compiled
def count(move: Move, kept: Score) -> Move:
    """How many, whoever comes first: messages of several partitions come in any order."""
    kept.points += 1
    return Move(move.game, "", kept.points)


def game_of(move: Move) -> tuple[int, str]:
    return move.game, move.player


def games(
    key: Any, ttl: timedelta | None = None, function: Any = score, **options: Any
) -> bettong.Application:
    """Scores, and how many a game has had."""
    app = bettong.Application("games")
    moves = app.source("moves", schema=Move, key=key)
    scores = moves.stateful(function, state=Score, name="score", ttl=ttl, **options)
    scores.sink("scores")
    scores.key_by("game", name="by-game").stateful(count, state=Score, name="of-game").sink("games")
    return app


KEPT = {
    "compiled": (games("player"), True),
    "compiled, of two fields": (games(("game", "player")), True),
    "compiled, to live": (games("game", timedelta(hours=1)), True),
    "of two fields": (games(("game", "player")), False),
    "by a function": (games(game_of, None, plain_score), False),
    "to live": (games("player", timedelta(hours=1)), False),
    "pickled": (games("player", None, plain_score, state_codec=bettong.Pickle), False),
}


@lru_cache
def kept(name: str) -> ReadyApplication:
    app, compiled = KEPT[name]
    return ReadyApplication(app, compiled=compiled)


moves = st.builds(
    Move, st.integers(0, 3), st.sampled_from(["a", "b", "c", "\u00e4", "d d"]), st.integers(-5, 5)
)
steps = st.lists(st.one_of(st.lists(moves, min_size=1, max_size=6), st.integers(1, 9)), max_size=12)


@pytest.mark.parametrize("name", KEPT)
@settings(max_examples=15, derandomize=True, deadline=None)
@given(steps=steps, first=st.integers(1, 6), resend=st.booleans())
def test_states_of_every_kind_go_where_their_keys_belong(
    name: str, steps: list[list[Move] | int], first: int, *, resend: bool
) -> None:
    changed = RepartitionedSession(kept(name), partitions=first)
    straight = AppSession(kept(name), partitions=1)
    for step in steps:
        if isinstance(step, int):
            changed.repartition(step)
            if resend:
                changed.step(RESEND)
        else:
            for session in (changed, straight):
                session.step(("moves", step))
    assert_alike(changed.outcome, straight.outcome)


@pytest.mark.parametrize("comes", ["before it", "after it"])
@pytest.mark.parametrize("partitions", [1, 5])
def test_what_a_sender_that_was_cut_off_writes_later_counts_for_nothing(partitions: int, comes: str) -> None:
    changed, straight = RepartitionedSession(kept("to live"), partitions=3), AppSession(kept("to live"))

    def send(points: int) -> None:
        for session in (changed, straight):
            session.step(("moves", [Move(0, f"p{each}", points) for each in "acd"]))

    send(1)
    (client,) = changed._clients._clients.values()
    cut_off = client.session
    changed.repartition(partitions)
    moves = [Move(0, f"p{each}", 2) for each in "acd"]
    frame = IngestFrame(
        sequence=2,
        columns=Columns.of_messages(schema_of(Move), moves).payload(),
        schema=schema_of(Move).fingerprint,
    )

    def writes() -> None:
        """The next frame, which a new session sends again."""
        for append in cut_off.take(frame, 0.0, 1000).appends:
            if append.partition < partitions:
                changed._processor.append(append.topic, append.partition, append.value)

    if comes == "before it":
        writes()
    send(2)
    if comes == "after it":
        writes()
    send(3)
    assert changed.outcome.counters["duplicates"] > 0
    assert_alike(changed.outcome, straight.outcome)


def test_counters_are_those_of_all_partitions() -> None:
    session = RepartitionedSession(kept("to live"), partitions=5)
    session.step(*(("moves", Move(number, f"p{number}", 1)) for number in range(20)))
    before = session.outcome.counters
    assert before["messages"] == 40
    for partitions in (2, 7, 1):
        session.repartition(partitions)
        assert session.outcome.counters == before


def test_dead_letters_go_on_under_their_numbers() -> None:
    app = bettong.Application("odd")
    app.source("moves", schema=Move, key="player").stateful(fails, state=Score, name="fails").sink("out")
    session = RepartitionedSession(app, partitions=3)
    for number, partitions in enumerate((1, 5, 2)):
        session.step(*(("moves", Move(0, f"p{each}", number)) for each in range(6)))
        session.repartition(partitions)
        session.step(RESEND)
    assert len(session.outcome.dead_letters) == 18
    assert session.outcome.counters["duplicates"] == 3


def fails(move: Move, kept: Score) -> Move:
    raise ValueError(move.points)


def test_a_reference_table_stays_at_its_version() -> None:
    session = RepartitionedSession(app_of(how="left"), partitions=2)
    session.step(("orders", Order("a", "x", 1)))
    session.step(Reference("priced", [Price("a", 11)]))
    for number, partitions in enumerate((5, 1, 3)):
        session.repartition(partitions)
        session.step(*(("orders", Order("a", f"x{each}", number)) for each in range(8)))
    session.step(Reference("priced", [Price("a", 12)]))
    session.step(("orders", Order("a", "x", 9)))
    cents = [each.cents for each in session.outcome.outputs["out"]]
    assert cents == [10, *[11] * 24, 12]


def test_states_of_keys_that_belong_elsewhere_are_refused() -> None:
    session = RepartitionedSession(kept("to live"), partitions=1)
    session.step(*(("moves", Move(0, f"p{each}", 1)) for each in range(6)))
    (partition,) = (each for id_, each in session._processor.partitions.items() if id_.stage == "moves")
    worker = partition.worker
    object.__setattr__(worker.assignment, "partitions", 3)
    with pytest.raises(SnapshotError, match="has states of keys that belong to partitions"):
        list(with_states(worker.program, [worker], 2, lambda _: Snapshot(stage="moves")))


def test_heads_are_made_one_by_one() -> None:
    session = RepartitionedSession(kept("of two fields"), partitions=2)
    session.step(*(("moves", Move(0, f"p{each}", 1)) for each in range(6)))
    workers = [each.worker for id_, each in session._processor.partitions.items() if id_.stage == "moves"]
    asked = []

    def head(id_: PartitionId) -> Snapshot:
        asked.append(id_.partition)
        return Snapshot(application="games", stage="moves", partition=id_.partition, now_ns=1)

    counts = []
    for number, (id_, _, states) in enumerate(with_states(workers[0].program, workers, 3, head)):
        assert asked == list(range(number + 1))
        assert id_ == PartitionId("moves", number)
        counts.append(states)
    assert sum(counts) == 6
