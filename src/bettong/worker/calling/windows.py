"""Calls the functions of windows: message by message, and for each window that is over."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from operator import length_hint
from typing import Any

import numpy as np

from bettong.application.on_error import STOP
from bettong.application.windows.readings import Added
from bettong.application.windows.windowed import Windowed
from bettong.frames.columns import Columns
from bettong.user_errors import ANY_ERROR, reason_of
from bettong.worker.batch import Batch
from bettong.worker.calling.result_builder import ResultBuilder
from bettong.worker.calling.results import Results
from bettong.worker.fired import fired_at
from bettong.worker.progress import FoldProgress
from bettong.worker.state.objects import ObjectTable
from bettong.worker.windows.sessions import SessionWindows
from bettong.worker.windows.window_rows import KeyWindows, WindowRows


class WindowMessages:
    """Puts messages into windows. See Calling. `rows`: those of the last call.

    `added`: what the windows take in place of messages, where no user function is called for them.
    """

    def __init__(
        self,
        node: Windowed,
        windows: KeyWindows,
        progress: FoldProgress,
        added: Sequence[Added] | None,
    ) -> None:
        self.rows = WindowRows(np.empty(0, np.int64), np.empty(0, np.int64))
        self._node = node
        self.windows = windows
        self._progress = progress
        self._added = added

    def call(self, batch: Batch, states: ObjectTable) -> Results:
        """See Calling. A key whose first message raises has no state."""
        self.rows = WindowRows(batch.event_times(), batch.message_watermarks())
        output = ResultBuilder(self._node.schema)
        add = self.windows.rows_adder(self.rows, states, output.add)
        rows, keys = range(batch.length), iter(batch.key_values())
        messages = iter(
            self._progress.messages(self._node.name, batch, keys)
            if self._added is None
            else _values(self._added, batch.columns)
        )
        last = batch.length - 1
        numbers = iter(rows)
        while True:
            try:
                add(keys, messages, numbers)
            except ANY_ERROR as error:
                failed = last - length_hint(keys)
                output.fail(failed, reason_of(error))
                numbers = iter(rows[failed + 1 :])
                if self._node.on_error != STOP:
                    continue
            states.delete_emptied(batch, self.rows.emptied)
            return output.results(batch.length)


def _values(added: Sequence[Added], columns: Columns) -> Iterable[Sequence[Any]]:
    """What each message adds."""
    return zip(
        *(
            repeat(each.same, columns.length)
            if each.field is None
            else columns.values(columns.schema.position(each.field))
            for each in added
        ),
        strict=True,
    )


class WindowClosing:
    """Calls the functions for windows' results. `times`: by row of the last call, the event time of its results."""

    def __init__(self, node: Windowed, windows: KeyWindows, timer: str) -> None:
        self.times: Sequence[int] = ()
        self._node = node
        self._windows = windows
        self._timer = timer

    def call(self, batch: Batch, states: ObjectTable) -> Results:
        """See Calling. The rows are timers that fired, of a key each."""
        output = ResultBuilder(self._node.schema)
        keys, due = batch.key_values(), batch.columns.values(1)
        self.times = times = list(due)
        for row, (key, at_ns) in enumerate(zip(keys, due, strict=True)):
            state = states.get(key)
            try:
                closed = self._windows.close(key, state, self._timer, at_ns)
                times[row] = closed.at_ns
                for result in closed.results:
                    if result is not None:
                        output.add(result, row)
            except ANY_ERROR as error:
                output.fail(row, reason_of(error))
                if self._node.on_error == STOP:
                    break
            states.delete_or_rearm(key, state, batch, row)
        return output.results(batch.length)

    def over(self, batch: Batch, states: ObjectTable) -> Batch:
        """The timers that are due, without those of sessions that have grown since: they are due later."""
        if not isinstance(self._windows, SessionWindows) or self._timer != "due":
            return batch
        grown = []
        for row, (key, at_ns) in enumerate(zip(batch.key_values(), batch.columns.values(1), strict=True)):
            state = states.get(key)
            if self._windows.has_grown(state, at_ns):
                grown.append(row)
                states.delete_or_rearm(key, state, batch, row)
        if not grown:
            return batch
        rows = np.delete(np.arange(batch.length), grown)
        return fired_at(batch.take(rows), batch.event_times()[rows])

    def skip(self, batch: Batch, states: ObjectTable, *, empty: bool) -> None:
        """Drops what was due for these fired timers, without calling a function. `empty`: see KeyWindows."""
        for row, (key, at_ns) in enumerate(zip(batch.key_values(), batch.columns.values(1), strict=True)):
            state = states.get(key)
            self._windows.skip(key, state, self._timer, at_ns, empty=empty)
            states.delete_or_rearm(key, state, batch, row)
