"""The joins of a stream: the methods that `Stream` has for them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack

from bettong.application.joins.joined import Joined, JoinOptions, joined
from bettong.application.joins.kinds import How, as_of, check_how, in_window, latest, within
from bettong.application.lifetime import lifetime_of
from bettong.application.nodes.node import StreamNode
from bettong.application.windows.kinds import WindowKind

if TYPE_CHECKING:
    from bettong.application.streams import JoinedStream, Stream

Message_co = TypeVar("Message_co", covariant=True)
Other = TypeVar("Other")
Result = TypeVar("Result")


class Joinable(Generic[Message_co]):
    """The joins of a stream with a key, which is the left side; the other stream has keys of the same type.

    `combine(left, right)` returns the result of a pair, or None for none. It must change neither message, since they
    may have other partners. It must annotate what it returns. `how`: "inner" for pairs only; with "left" a message of
    this stream without a partner results in `combine(left, None)`, with "right" one of the other in `combine(None,
    right)`, with "outer" both do. If `combine` raises, the message that completed the pair becomes a dead letter, or as
    `on_error` says; its other pairs are made. `name`, `version`: see `Stream.stateful`. Marked `@bettong.compiled` it
    makes `join_within`, `join_latest` and `join_as_of` run over columns.
    """

    def join_within(
        self,
        right: Stream[Other],
        lower: timedelta,
        upper: timedelta,
        combine: Callable[[Message_co, Other], Result | None],
        *,
        how: How = "inner",
        **options: Unpack[JoinOptions],
    ) -> JoinedStream[Result, Message_co, Other]:
        """Pairs whose event times are near: `lower <= right.time - left.time <= upper`. Either bound may be negative.

        A pair is emitted with the later of both in the log; a message without a partner when the watermark is past the
        last possible one. A message is late when all its possible partners may have been dropped: see
        `JoinedStream.late`.
        """

        def make(left: StreamNode, other: StreamNode) -> Joined:
            owner = f"join_within of {left.name!r}"
            check_how(owner, how)
            return joined("join_within", left, other, combine, within(owner, lower, upper), how, **options)

        return self._joined(right, make)

    def join_latest(
        self,
        table: Stream[Other],
        combine: Callable[[Message_co, Other], Result | None],
        *,
        how: How = "inner",
        delete_when: str | Callable[[Other], bool] | None = None,
        ttl: timedelta | None = None,
        **options: Unpack[JoinOptions],
    ) -> JoinedStream[Result, Message_co, Other]:
        """Pairs each message with the newest one of the table that has its key, in the order of the log; at once.

        `delete_when`: a bool field of the table's messages, or a predicate of one, that says whether it deletes the
        key's value. `ttl`: a key's value ends when the log clock is so much past the table's last message of it. `how`:
        "inner" or "left".
        """

        def make(left: StreamNode, other: StreamNode) -> Joined:
            owner = f"join_latest of {left.name!r}"
            check_how(owner, how, of_left=True)
            kind, lifetime = (
                latest(owner, delete_when, other.one_schema(owner)),
                lifetime_of(owner, ttl, "log"),
            )
            return joined("join_latest", left, other, combine, kind, how, lifetime, **options)

        return self._joined(table, make)

    def join_as_of(
        self,
        table: Stream[Other],
        combine: Callable[[Message_co, Other], Result | None],
        *,
        tolerance: timedelta | None = None,
        how: How = "inner",
        **options: Unpack[JoinOptions],
    ) -> JoinedStream[Result, Message_co, Other]:
        """Pairs each message with the table's message that was valid then: the latest one at or before its event time.

        It is emitted when the watermark is past that. `tolerance`: how much older the table's message may be.
        `how`: "inner" or "left".
        """

        def make(left: StreamNode, other: StreamNode) -> Joined:
            owner = f"join_as_of of {left.name!r}"
            check_how(owner, how, of_left=True)
            return joined("join_as_of", left, other, combine, as_of(owner, tolerance), how, **options)

        return self._joined(table, make)

    def join_window(
        self,
        right: Stream[Other],
        window: WindowKind,
        combine: Callable[[Message_co, Other], Result | None],
        *,
        how: How = "inner",
        **options: Unpack[JoinOptions],
    ) -> JoinedStream[Result, Message_co, Other]:
        """All pairs of messages that are in the same window, when it is over: `tumbling`, `sliding` or `sessions`.

        A message is late when all of its windows are over.
        """

        def make(left: StreamNode, other: StreamNode) -> Joined:
            owner = f"join_window of {left.name!r}"
            check_how(owner, how)
            return joined("join_window", left, other, combine, in_window(owner, window), how, **options)

        return self._joined(right, make)

    def _joined(
        self, right: Stream[Any], make: Callable[[StreamNode, StreamNode], Joined]
    ) -> JoinedStream[Any, Any, Any]:
        """Adds the node that `make` makes of both sides. Raises ApplicationError if `right` is no such stream."""
        raise NotImplementedError
