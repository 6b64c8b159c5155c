"""`join_within`: pairs whose event times are near each other.

A message of event time t has its partners from `t + first` to `t + last`; the two bounds depend on its side. It is kept
until the watermark is past `t + last`. A partner at p is kept until the watermark is past `p - first`, so a message at
t finds partners from `max(t, watermark) + first` to `t + last`. Where that range is empty, all its possible partners
may have been dropped, and it is late. A message that finds no partner, and whose own reach is over when it arrives,
stays alone: it is a result at once.

This is decided by event times alone. So it does not matter when past messages are dropped, which happens for many at a
time.

A message that may be a result alone is kept until the watermark is past its own time, too. Its reach may end before
that, but the watermark then is not a fact to decide by: for messages that are not late it depends on how they were
batched into frames.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import partial
from operator import attrgetter
from typing import Any

from bettong.application.joins.kinds import How, Within
from bettong.application.joins.states import KeptMessage, OuterState, WithinState
from bettong.application.timers import NEVER
from bettong.frames.columns import Array
from bettong.worker.joins.key_join import Add, ClosedPairs, Pair
from bettong.worker.joins.reaches import reaches
from bettong.worker.state.objects import ObjectTable
from bettong.worker.windows.window_rows import WindowRows

_by_number = attrgetter("number")
# Takes half the time of the class's own constructor, which is Python.
_held = partial(tuple.__new__, KeptMessage)


class WithinJoin:
    """See KeyJoin."""

    def __init__(self, kind: Within, how: How) -> None:
        self._reaches = reaches(kind, how)
        self._kept_ns = (self._reaches.left.kept_ns, self._reaches.right.kept_ns)

    def adders(self, rows: WindowRows, states: ObjectTable, pair: Pair) -> tuple[Add, Add]:
        """See KeyJoin."""
        times, watermarks = rows.times.tolist(), rows.watermarks.tolist()
        left, right = (
            self._adder(rows, times, watermarks, states, pair, is_right=is_right)
            for is_right in (False, True)
        )
        return left, right

    def _adder(
        self,
        rows: WindowRows,
        times: Sequence[int],
        watermarks: Sequence[int],
        states: ObjectTable,
        pair: Pair,
        *,
        is_right: bool,
    ) -> Add:
        first_ns, last_ns, kept_ns, emits_alone = self._reaches.of_side(is_right=is_right)
        partner_emits_alone = self._reaches.of_side(is_right=not is_right).emits_alone
        latest_ns, late = self._reaches.latest_ns, rows.late
        find, create, timers = states.get, states.create, states.timers
        assert timers is not None  # noqa: S101 - it has one
        note = timers.note

        def add(row: int, key: Any, message: Any) -> None:
            at_ns, reached_ns = times[row], watermarks[row]
            until_ns, kept_until_ns = at_ns + last_ns, at_ns + kept_ns
            from_ns = (max(reached_ns, at_ns)) + first_ns
            if from_ns > until_ns:
                late.append(row)
                return
            if at_ns > latest_ns:
                raise beyond(at_ns)
            state = find(key)
            if state is None:
                partners: Sequence[KeptMessage] = ()
            else:
                partners = _between(state.left if is_right else state.right, from_ns, until_ns)
                for partner in partners:
                    if is_right:
                        pair(partner[2], message, row)
                    else:
                        pair(message, partner[2], row)
                if partners and partner_emits_alone:
                    _remove_paired(state.left_alone if is_right else state.right_alone, partners)
            is_alone = emits_alone and not partners
            if kept_until_ns < reached_ns:
                if is_alone:
                    pair(None if is_right else message, message if is_right else None, row)
                return
            if state is None:
                state = create(key)
            number = state.count
            state.count = number + 1
            own, held = state.right if is_right else state.left, _held((at_ns, number, message))
            if not own or own[-1][0] <= at_ns:
                own.append(held)
            else:
                own.insert(bisect_left(own, (at_ns + 1,)), held)
            if is_alone:
                alone = state.right_alone if is_right else state.left_alone
                alone.insert(bisect_left(alone, (at_ns + 1,)), (at_ns, number))
            if state.due == NEVER or (is_alone and kept_until_ns + 1 < state.due):
                state.due = kept_until_ns + 1
                note(key, state)

        return add

    def soonest_due(self, times: Array) -> Array:
        """See KeyJoin."""
        return self._reaches.soonest_due(times)

    def due_ns(self, state: WithinState, at_ns: int, until_ns: int) -> Sequence[int]:
        """See KeyJoin. A time occurs twice where messages of both sides turn out to stay alone at it."""
        if not isinstance(state, OuterState):
            return (at_ns,)
        times: list[int] = []
        for alone, kept_ns in zip((state.left_alone, state.right_alone), self._kept_ns, strict=True):
            times += {each + kept_ns + 1 for each, _ in alone[: bisect_left(alone, (until_ns - kept_ns,))]}
        return sorted(times if at_ns in times else [at_ns, *times])

    def close(self, key: Any, state: WithinState, at_ns: int) -> ClosedPairs:  # noqa: ARG002
        """See KeyJoin. The left side fires first; the right one next, since the state is due again."""
        pairs: list[tuple[Any, Any]] = []
        for is_right, kept_ns in enumerate(self._kept_ns):
            own = state.right if is_right else state.left
            last_at_ns = at_ns - 1 - kept_ns
            if isinstance(state, OuterState):
                alone = state.right_alone if is_right else state.left_alone
                stop = bisect_left(alone, (last_at_ns + 1,))
                if stop and pairs:
                    break
                for each in alone[:stop]:
                    message = own[bisect_left(own, each)].message
                    pairs.append((None, message) if is_right else (message, None))
                del alone[:stop]
            del own[: bisect_left(own, (last_at_ns + 1,))]
        state.due = self._next_due_ns(state)
        return ClosedPairs(at_ns - 1, pairs)

    def _next_due_ns(self, state: WithinState) -> int:
        """When the first message turns out to stay alone; without such, when the last one can be dropped."""
        ends, alone_ends = [], []
        for is_right, kept_ns in enumerate(self._kept_ns):
            if own := state.right if is_right else state.left:
                ends.append(own[-1].at_ns + kept_ns + 1)
            if isinstance(state, OuterState) and (
                alone := state.right_alone if is_right else state.left_alone
            ):
                alone_ends.append(alone[0][0] + kept_ns + 1)
        return min(alone_ends) if alone_ends else max(ends, default=NEVER)


def beyond(at_ns: int) -> ValueError:
    """The error for a message of that event time."""
    return ValueError(f"its event time is {at_ns} ns: its bounds end after the year 2262")


def _between(held: Sequence[KeptMessage], from_ns: int, until_ns: int) -> Sequence[KeptMessage]:
    """The messages of these event times, in the order of the log."""
    if not held or held[-1][0] < from_ns:
        return ()
    start = bisect_left(held, (from_ns,))
    stop = bisect_left(held, (until_ns + 1,), start) if held[-1][0] > until_ns else len(held)
    found = held[start:stop]
    return sorted(found, key=_by_number) if len(found) > 1 else found


def _remove_paired(alone: list[tuple[int, int]], partners: Sequence[KeptMessage]) -> None:
    """Removes partners that were found from the messages that are alone."""
    for at_ns, number, _ in partners:
        index = bisect_left(alone, (at_ns, number))
        if index < len(alone) and alone[index] == (at_ns, number):
            del alone[index]
