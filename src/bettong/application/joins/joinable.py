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
    """Of a stream with a key, which is the left side; the other one has keys of the same type.

    `combine(left, right)` makes the result of a pair, or None for none. It changes neither message, for they may have
    other partners. It says by annotation what it returns. `how`: "inner" for pairs alone; with "left" a message of this
    stream without a partner gives `combine(left, None)`, with "right" one of the other `combine(None, right)`, with
    "outer" both do. What `combine` raises is a dead letter of the message with which the pair came, or what `on_error`
    says; the other pairs of that message are made. `name`, `version`: see `Stream.stateful`. Marked
    `@bettong.compiled` it makes `join_within`, `join_latest` and `join_as_of` run over columns.
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
        """Pairs whose event times are near: `lower <= right.time - left.time <= upper`. Either may be negative.

        A pair comes with the later one of both in the log. What comes without a partner comes when the watermark is
        past the last possible one. A message is late when nothing that could be its partner may still be held: see
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
        """Each message with the newest one of the table that has its key, in the log's order; at once.

        `delete_when`: a bool field of the table's messages, or a function of one, that says that it deletes what is
        there. `ttl`: a key's value ends when the log clock is so much past the table's last message of it.
        `how`: "inner" or "left".
        """

        def make(left: StreamNode, other: StreamNode) -> Joined:
            owner = f"join_latest of {left.name!r}"
            check_how(owner, how, of_left=True)
            kind, lifetime = (
                latest(owner, delete_when, other.one_schema(owner)),
                lifetime_of(owner, ttl, "log"),
            )
            return joined("join_latest", left, other, combine, kind, how, lifetime=lifetime, **options)

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
        """Each message with the table's message that was valid when it happened: the latest one at or before its time.

        It comes when the watermark is past the message's time. `tolerance`: how much older the table's message may be.
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
        """Adds the node that `make` makes of both sides. Raises ApplicationError for what is no other stream."""
        raise NotImplementedError
