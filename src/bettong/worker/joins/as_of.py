"""`join_as_of`: the version of a table that was valid when a message happened.

A message waits until the watermark is past its time: by then each version at or before it has arrived. The versions
that a message which is not late may need are kept: the latest one at or before the watermark, and all later ones.

A late message is paired at once if its version is still kept. A late version is kept unless there is a later one at or
before the watermark, since then no message can need it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import numpy as np

from bettong.application.joins.kinds import AsOf, How
from bettong.application.joins.states import AsOfState, TimedMessage
from bettong.application.timers import NEVER
from bettong.frames.columns import Array
from bettong.worker.joins.key_join import Add, ClosedPairs, Pair
from bettong.worker.state.objects import ObjectTable
from bettong.worker.windows.window_rows import WindowRows

# Versions out of reach that a key may keep while no message arrives for it: a timer for each would cost more.
SPARE_VERSIONS = 8


class AsOfJoin:
    """See KeyJoin."""

    def __init__(self, kind: AsOf, how: How) -> None:
        self._emits_alone = how == "left"
        self._tolerance_ns = kind.tolerance_ns
        self._latest_ns = kind.latest_ns

    def adders(self, rows: WindowRows, states: ObjectTable, pair: Pair) -> tuple[Add, Add]:
        """See KeyJoin."""
        times, watermarks = rows.times.tolist(), rows.watermarks.tolist()
        find, create, timers, latest_ns = states.get, states.create, states.timers, self._latest_ns
        assert timers is not None  # noqa: S101 - it has one

        def ask(row: int, key: Any, message: Any) -> None:
            at_ns, reached_ns = times[row], watermarks[row]
            _check(at_ns, latest_ns)
            state = find(key)
            if at_ns < reached_ns:
                valid = self._valid(state.versions, at_ns, reached_ns) if state is not None else None
                if valid is None:
                    rows.late.append(row)
                else:
                    pair(message, valid.message, row)
                return
            if state is None:
                state = create(key)
            waiting = state.waiting
            waiting.insert(bisect_left(waiting, (at_ns + 1,)), TimedMessage(at_ns, message))
            if at_ns + 1 < state.due:
                state.due = at_ns + 1
                timers.note(key, state)

        def renew(row: int, key: Any, message: Any) -> None:
            at_ns, reached_ns = times[row], watermarks[row]
            _check(at_ns, latest_ns)
            state = find(key)
            versions = state.versions if state is not None else []
            if at_ns < reached_ns and self._is_out_of_reach(versions, at_ns, reached_ns):
                rows.late.append(row)
                return
            if state is None:
                state = create(key)
                versions = state.versions
            _put_version(versions, TimedMessage(at_ns, message))
            if len(versions) > 1:
                waiting = state.waiting
                _forget_before(versions, min(reached_ns, waiting[0].at_ns) if waiting else reached_ns)
            if state.due == NEVER and (due_ns := self._droppable_ns(versions)) < NEVER:
                state.due = due_ns
                timers.note(key, state)

        return ask, renew

    def soonest_due(self, times: Array) -> Array:
        """See KeyJoin."""
        return np.minimum(times, self._latest_ns) + 1

    def due_ns(self, state: AsOfState, at_ns: int, until_ns: int) -> Sequence[int]:
        """See KeyJoin."""
        waiting = state.waiting
        times = {each.at_ns + 1 for each in waiting[: bisect_left(waiting, (until_ns,))]}
        return sorted({at_ns, *times})

    def close(self, key: Any, state: AsOfState, at_ns: int) -> ClosedPairs:  # noqa: ARG002
        """See KeyJoin. The messages that wait for this time have the event time just before it."""
        waiting, versions, pairs = state.waiting, state.versions, []
        stop = bisect_left(waiting, (at_ns,))
        for each in waiting[:stop]:
            valid = self._valid(versions, each.at_ns, each.at_ns)
            if valid is not None or self._emits_alone:
                pairs.append((each.message, None if valid is None else valid.message))
        del waiting[:stop]
        _forget_before(versions, at_ns)
        if self._tolerance_ns is not None:
            del versions[: bisect_left(versions, (at_ns - self._tolerance_ns,))]
        state.due = waiting[0].at_ns + 1 if waiting else self._droppable_ns(versions)
        return ClosedPairs(at_ns - 1, pairs)

    def _valid(self, versions: Sequence[TimedMessage], at_ns: int, reached_ns: int) -> TimedMessage | None:
        """The version that was valid then; None if there is none, or if an earlier version may have been dropped.

        `reached_ns`: the watermark, or that time where it is later.
        """
        index = bisect_left(versions, (reached_ns + 1,)) - 1
        if index < 0:
            return None
        found, tolerance_ns = versions[index], self._tolerance_ns
        is_old = tolerance_ns is not None and found.at_ns + tolerance_ns < reached_ns
        return None if is_old or found.at_ns > at_ns else found

    def _is_out_of_reach(self, versions: Sequence[TimedMessage], at_ns: int, reached_ns: int) -> bool:
        """Whether no message that is not late can need a version of that time."""
        if self._tolerance_ns is not None and at_ns + self._tolerance_ns < reached_ns:
            return True
        index = bisect_left(versions, (reached_ns + 1,)) - 1
        return index >= 0 and versions[index].at_ns > at_ns

    def _droppable_ns(self, versions: Sequence[TimedMessage]) -> int:
        """When versions can be dropped, all or all but the last one, if no message arrives until then."""
        if self._tolerance_ns is not None and versions:
            return versions[-1].at_ns + self._tolerance_ns + 1
        return versions[-1].at_ns if len(versions) > SPARE_VERSIONS else NEVER


def _check(at_ns: int, latest_ns: int) -> None:
    if at_ns > latest_ns:
        raise beyond(at_ns)


def beyond(at_ns: int) -> ValueError:
    """The error for a message of that time, which cannot be added."""
    return ValueError(f"its event time is {at_ns} ns: it is due after the year 2262")


def _put_version(versions: list[TimedMessage], version: TimedMessage) -> None:
    """Adds a version; of versions of one time, the last one in the log is kept."""
    if not versions or versions[-1].at_ns < version.at_ns:
        versions.append(version)
        return
    index = bisect_left(versions, (version.at_ns,))
    is_known = versions[index].at_ns == version.at_ns
    versions[index : index + is_known] = [version]


def _forget_before(versions: list[TimedMessage], at_ns: int) -> None:
    """Drops versions that only messages before that time need: the last one at or before it stays."""
    if len(versions) > 1 and versions[1].at_ns <= at_ns:
        del versions[: bisect_left(versions, (at_ns + 1,)) - 1]
