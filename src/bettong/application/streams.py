"""Streams, with which an application is described. Nothing here processes a message.

A `Stream` is a handle of a node of its application (see `nodes`). Its methods add nodes that read it; their parameters
are typed by the messages of the stream, so that a type checker reports a function that does not take them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack, overload

from bettong.application.callables import check_options
from bettong.application.execution_mode import RowIndexes
from bettong.application.external.destination import Destination
from bettong.application.foldable import Foldable
from bettong.application.joins.joinable import Joinable
from bettong.application.joins.joined import Joined, LateSide, late_side
from bettong.application.joins.referenced import ReferenceHow, referenced
from bettong.application.key import Key, key_name
from bettong.application.nodes.branched import branched
from bettong.application.nodes.dead_letter_messages import (
    DeadLetter,
    DeadLetterMessages,
    dead_letter_messages,
)
from bettong.application.nodes.keyed import keyed
from bettong.application.nodes.merged import Merged, merged
from bettong.application.nodes.node import StreamNode
from bettong.application.nodes.sink import Sink, sink
from bettong.application.nodes.stateful import Handler, stateful
from bettong.application.nodes.stateless import filtered, flat_mapped, mapped
from bettong.application.on_error import DEAD_LETTER, OnError
from bettong.application.windows.aggregation import Aggregation
from bettong.application.windows.kinds import WindowKind
from bettong.application.windows.partials import LocalOptions, local_windows
from bettong.application.windows.windowed import LateMessages, windowed
from bettong.application.windows.windowing import Late
from bettong.errors import ApplicationError
from bettong.schema.key_types import KeyPart, KeyValue
from bettong.schema.schema import Schema

if TYPE_CHECKING:
    from bettong.application.application import Application

Message_co = TypeVar("Message_co", covariant=True)
Taken_co = TypeVar("Taken_co", covariant=True)
Right_co = TypeVar("Right_co", covariant=True)
Result = TypeVar("Result")
Other = TypeVar("Other")


@dataclass(frozen=True, repr=False)
class Stream(Foldable[Message_co], Joinable[Message_co], Generic[Message_co]):
    """A named stream of messages of one schema (`merge` alone may mix several)."""

    app: Application = field(compare=False)
    node: StreamNode

    def __repr__(self) -> str:
        return f"{type(self.node).__name__.lower()} {self.name!r}"

    @property
    def name(self) -> str:
        """Its name, unique in the application."""
        return self.node.name

    @property
    def schema(self) -> Schema | None:
        """The schema of its messages; None where there are several."""
        return self.node.schema

    @property
    def keyed(self) -> bool:
        """Whether its messages have a key."""
        return self.node.keyed

    @property
    def dead_letters(self) -> Stream[DeadLetter]:
        """The messages that the computation could not process, as a stream; the sink `dead-letters` gets them, too.

        Failures of its timers' functions, or of its windows' results, go to the sink only.
        """
        made = dead_letter_messages(self.node)
        known = self.app.nodes.get(made.name)
        return Stream(self.app, known if isinstance(known, DeadLetterMessages) else self.app.add(made))

    def map(
        self,
        function: Callable[[Message_co], Result],
        *,
        name: str | None = None,
        on_error: OnError = DEAD_LETTER,
    ) -> Stream[Result]:
        """One message out for each message in. `function(message)` must annotate what it returns.

        `on_error`, here and below: what to do with a message for which the function raises, or returns a result that
        does not fit its schema (see `application.on_error`).
        """
        return Stream(self.app, self.app.add(mapped(self.node, function, name, on_error)))

    def filter(
        self,
        function: Callable[[Message_co], bool],
        *,
        name: str | None = None,
        on_error: OnError = DEAD_LETTER,
    ) -> Stream[Message_co]:
        """Keeps the messages for which `function(message)` is true."""
        return Stream(self.app, self.app.add(filtered(self.node, function, name, on_error)))

    @overload
    def flat_map(
        self,
        function: Callable[[Message_co], tuple[Result, RowIndexes]],
        *,
        name: str | None = None,
        on_error: OnError = DEAD_LETTER,
    ) -> Stream[Result]: ...

    @overload
    def flat_map(
        self,
        function: Callable[[Message_co], Iterable[Result | None]],
        *,
        name: str | None = None,
        on_error: OnError = DEAD_LETTER,
    ) -> Stream[Result]: ...

    def flat_map(
        self,
        function: Callable[[Message_co], Any],
        *,
        name: str | None = None,
        on_error: OnError = DEAD_LETTER,
    ) -> Stream[Any]:
        """Any number of messages out for each one in: `function(message) -> Iterable[Message]`."""
        return Stream(self.app, self.app.add(flat_mapped(self.node, function, name, on_error)))

    def branch(
        self, *, on_error: OnError = DEAD_LETTER, **predicates: Callable[[Message_co], bool]
    ) -> dict[str, Stream[Message_co]]:
        """Divides the stream into branches, by name: `branch(large=is_large, small=lambda order: True)`.

        Each message goes to the first branch whose predicate returns true, and to none if all return false.
        """
        nodes = branched(self.node, predicates, on_error)
        return {node.name: Stream(self.app, self.app.add(node)) for node in nodes}

    def key_by(
        self,
        key: str | tuple[str, ...] | Callable[[Message_co], KeyValue],
        *,
        name: str | None = None,
        on_error: OnError = DEAD_LETTER,
    ) -> Stream[Message_co]:
        """Repartitions the stream by a field, by several (`("symbol", "venue")`), or by what a function of a message
        returns: text, bytes, an integer, or a tuple of these.

        It begins a new stage, which reads a topic of its own, so that its order is part of the log.
        """
        return Stream(self.app, self.app.add(keyed(self.node, key, name, on_error)))

    def local(
        self,
        key: str | tuple[str, ...] | Callable[[Message_co], KeyValue],
        *,
        on_error: OnError = DEAD_LETTER,
    ) -> LocalStream[Message_co]:
        """`key_by` with pre-aggregation, for tumbling and sliding windows that read much more than they keep.

        Before messages are repartitioned, those of a frame with one key and the same windows are combined into one, by
        the aggregation. The results are those of `key_by`. `()`: all messages have one key, as after `collect`.
        """
        return LocalStream(self.app, self.node, key, on_error)

    def collect(self, *, name: str | None = None, on_error: OnError = DEAD_LETTER) -> Stream[Message_co]:
        """Assigns all messages one key, so that what follows sees all of them: `collect().stateful(...)` has one state.

        Only one partition of that stage has work, on one core.
        """
        return self.key_by((), name=name, on_error=on_error)

    def merge(self, *others: Stream[Other]) -> Stream[Message_co | Other]:
        """This stream and others as one, in the order of the log.

        Messages derived from one message are in the order of the streams here.
        """
        parts = [self.node, *(self._node_of(other, "merge") for other in others)]
        return Stream(self.app, self.app.add(merged(parts, self.app.nodes)))

    def _folded(self, handlers: Mapping[Any, Handler], **options: Any) -> Stream[Any]:
        """See Foldable."""
        by_node = {self._node_of(stream, "stateful"): handler for stream, handler in handlers.items()}
        return Stream(self.app, self.app.add(stateful(self.node, by_node, **options)))

    def window(
        self,
        windows: WindowKind,
        aggregation: Aggregation[Message_co, Any, Result],
        *,
        name: str | None = None,
        late: Late = "drop",
        emit_empty: bool = False,
        early: timedelta | None = None,
        version: int = 1,
        on_error: OnError = DEAD_LETTER,
    ) -> WindowedStream[Result, Message_co]:
        """Aggregates each key's messages in windows of event time: `tumbling(...)`, `sliding(...)`, `sessions(...)`; or
        by their number: `counts(...)`. Emits the result of each window. `aggregation`: see `Aggregation`.

        A window fires once, when the watermark has reached its end. `late`: what to do with a message whose windows
        have all fired: "drop" (count it), "fire" (emit a result of it alone), "oldest" (add it to the oldest open
        window), "side" (send it to the stream `.late`). `emit_empty`: also fires windows without messages between a
        key's open ones. `early`: so long after a change (log clock), open windows emit a result that is not
        `window.final`.
        """
        node, late_messages = windowed(
            self.node,
            windows,
            aggregation,
            name=name,
            late=late,
            emit_empty=emit_empty,
            early=early,
            version=version,
            on_error=on_error,
        )
        self.app.add(node)
        if late_messages is not None:
            self.app.add(late_messages)
        return WindowedStream(self.app, node, late_messages)

    def join_reference(
        self,
        load: Callable[..., object],
        combine: Callable[[Message_co, Other], Result | None],
        *,
        key: str,
        on: str | Callable[[Message_co], KeyPart] | None = None,
        reload_every: timedelta | None = None,
        how: ReferenceHow = "inner",
        name: str | None = None,
        on_error: OnError = DEAD_LETTER,
    ) -> Stream[Result]:
        """Joins each message with a row of a table that is loaded from elsewhere; at once. The stream needs no key.

        `load()`, or `load(spark)` with Spark's session, runs in the processor and returns an Arrow table, a pandas or a
        Spark DataFrame: at the start, and again each `reload_every`. Its columns are the fields of the class of
        `combine`'s second parameter; others are ignored. Each row has a different value in the column `key`; `on`, a
        field of the message or a function of it, selects the row: by default the field of that name, else the key of
        the stream. `combine` returns the result, or None for none; with how="left" a message without a row results in
        `combine(message, None)`. Messages after a record that names a new version see that version, on every replay. A
        `load` that fails, or returns no such table, leaves the table as it was.
        """
        node = referenced(
            self.node,
            load,
            combine,
            key=key,
            on=on,
            reload_every=reload_every,
            how=how,
            name=name,
            on_error=on_error,
        )
        return Stream(self.app, self.app.add(node))

    def _joined(
        self, right: Stream[Any], make: Callable[[StreamNode, StreamNode], Joined]
    ) -> JoinedStream[Any, Any, Any]:
        """See Joinable."""
        node = make(self.node, self._node_of(right, "join"))
        return JoinedStream(self.app, self.app.add(node), node)

    def _node_of(self, given: object, method: str) -> StreamNode:
        """The node of what is given as a stream. Raises ApplicationError."""
        if not isinstance(given, Stream) or given.app is not self.app:
            raise ApplicationError(f"{method} of {self.name!r}: {given!r} is no stream of this application")
        return given.node

    def sink(
        self,
        name: str,
        *,
        encoder: Callable[[Message_co], bytes] | None = None,
        to: Destination | None = None,
        on_error: OnError = DEAD_LETTER,
    ) -> StreamEnd:
        """Delivers the stream's messages under a name; `encoder(message)` returns the bytes of each.

        `to` is a destination in addition to those in the settings (files, Redis); see `bettong.application.external`.
        `on_error` applies to messages that the encoder cannot encode, or that the destination rejects for good.
        """
        return StreamEnd(self.app.add(sink(self.node, name, encoder, to, on_error)))


@dataclass(frozen=True)
class LocalStream(Generic[Message_co]):
    """The result of `Stream.local`: only `window` can follow it."""

    app: Application = field(compare=False, repr=False)
    node: StreamNode
    key: Key
    on_error: OnError

    def window(
        self,
        windows: WindowKind,
        aggregation: Aggregation[Message_co, Any, Result],
        **options: Unpack[LocalOptions],
    ) -> Stream[Result]:
        """See `Stream.window`. Late messages are dropped, and counted.

        Raises ApplicationError for sessions, counts and ephemeral windows, for sums of floats, and for aggregations
        marked `compiled`. A `combine` of your own must be associative: neighbours are combined in arbitrary groups.
        """
        check_options(f"window after local of {self.node.name!r}", options, LocalOptions)
        nodes = local_windows(self.node, self.key, self.on_error, windows, aggregation, **options)
        return Stream(self.app, [self.app.add(each) for each in nodes][-1])

    if not TYPE_CHECKING:  # A type checker reports a missing method by itself.

        def __getattr__(self, attribute: str) -> object:
            if hasattr(Stream, attribute):
                raise ApplicationError(
                    f"{attribute!r} after local({key_name(self.key)!r}) of {self.node.name!r}: only window(...) follows"
                    " local(...); put key_by(...) in its place"
                )
            raise AttributeError(f"the result of local(...) has no attribute {attribute!r}")


@dataclass(frozen=True, repr=False)
class WindowedStream(Stream[Message_co], Generic[Message_co, Taken_co]):
    """The results of windows of messages; see `Stream.window`."""

    late_node: LateMessages | None = field(compare=False)

    @property
    def late(self) -> Stream[Taken_co]:
        """The late messages, unchanged, of a window with late="side"."""
        if self.late_node is None:
            raise ApplicationError(f'window {self.name!r}: .late: give it late="side"')
        return Stream(self.app, self.late_node)


@dataclass(frozen=True, repr=False)
class JoinedStream(Stream[Message_co], Generic[Message_co, Taken_co, Right_co]):
    """The results of pairs of messages; see `Joinable`."""

    join_node: Joined = field(compare=False)

    @property
    def late(self) -> Stream[Taken_co | Right_co]:
        """The late messages of both sides, unchanged. For one side: `late_left`, `late_right`."""
        left, right = self.late_left, self.late_right
        found = self.app.nodes.get(f"{left.name}+{right.name}")
        return Stream(self.app, found) if isinstance(found, Merged) else left.merge(right)

    @property
    def late_left(self) -> Stream[Taken_co]:
        """The late messages of the left side, unchanged."""
        return self._late(is_right=False)

    @property
    def late_right(self) -> Stream[Right_co]:
        """The late messages of the right side, unchanged."""
        return self._late(is_right=True)

    def _late(self, *, is_right: bool) -> Stream[Any]:
        made = late_side(self.join_node, is_right=is_right)
        known = self.app.nodes.get(made.name)
        return Stream(self.app, known if isinstance(known, LateSide) else self.app.add(made))


@dataclass(frozen=True, repr=False)
class StreamEnd:
    """The result of `Stream.sink`: nothing can follow it."""

    node: Sink

    def __repr__(self) -> str:
        return f"sink {self.name!r}"

    @property
    def name(self) -> str:
        """The sink's name."""
        return self.node.name

    if not TYPE_CHECKING:  # A type checker reports a missing method by itself.

        def __getattr__(self, attribute: str) -> object:
            if hasattr(Stream, attribute):
                raise ApplicationError(
                    f"{attribute!r} after sink {self.name!r}: nothing follows a sink;"
                    f" call it on {self.node.parent.name!r}"
                )
            raise AttributeError(f"a sink has no attribute {attribute!r}")
