"""Streams: what an application is described with. Nothing here runs a message.

A `Stream` is a handle of a node of its application (see `nodes`). Its methods add the nodes of what follows; what each
takes is typed by the messages of the stream, so that a type checker says where a function does not take them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack, overload

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
        """What its messages are; None where they are of several schemas."""
        return self.node.schema

    @property
    def keyed(self) -> bool:
        """Whether its messages have a key."""
        return self.node.keyed

    @property
    def dead_letters(self) -> Stream[DeadLetter]:
        """The messages that the computation could not process, as a stream; the sink `dead-letters` has them, too.

        Not what the functions of its timers, or the results of its windows, have failed at: that is in the sink alone.
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
        """One message out for each message in. `function(message)` says by annotation what it returns.

        `on_error`, here and below: what becomes of a message for which the function raises, or returns what does
        not fit (see `application.on_error`).
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

        Each message goes to the first one whose predicate is true of it, and to none where all are false.
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
        """Partitions the stream anew by a field, by several (`("symbol", "venue")`), or by what a function gives of a
        message: text, bytes, an integer, or a tuple of these.

        What follows is a new stage behind a topic of its own, so that its order is part of the log.
        """
        return Stream(self.app, self.app.add(keyed(self.node, key, name, on_error)))

    def local(
        self,
        key: str | tuple[str, ...] | Callable[[Message_co], KeyValue],
        *,
        on_error: OnError = DEAD_LETTER,
    ) -> LocalStream[Message_co]:
        """`key_by` for tumbling and sliding windows that are given much more than they keep.

        Before they pass the log, the messages of a frame with one key and the same windows are combined into one, by
        the aggregation. The results are those of `key_by`. `()`: all messages have one key, as behind `collect`.
        """
        return LocalStream(self.app, self.node, key, on_error)

    def collect(self, *, name: str | None = None, on_error: OnError = DEAD_LETTER) -> Stream[Message_co]:
        """Gives all messages one key, so that what follows sees all of them: `collect().stateful(...)` has one state.

        That is a stage of which one partition works, on one core.
        """
        return self.key_by((), name=name, on_error=on_error)

    def merge(self, *others: Stream[Other]) -> Stream[Message_co | Other]:
        """This stream and others as one; the log's order decides who comes first.

        Messages that come from one message go in the order of the streams here.
        """
        given: tuple[object, ...] = others
        for other in given:
            if not isinstance(other, Stream) or other.app is not self.app:
                raise ApplicationError(f"merge of {self.name!r}: {other!r} is no stream of this application")
        parts = [self.node, *(other.node for other in others)]
        return Stream(self.app, self.app.add(merged(parts, self.app.nodes)))

    def _folded(self, handlers: Mapping[Any, Handler], **options: Any) -> Stream[Any]:
        """See Foldable."""
        by_node = {key.node if isinstance(key, Stream) else key: handler for key, handler in handlers.items()}
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
        """Each key's messages by windows of event time, and the result of each window: `tumbling(...)`, `sliding(...)`,
        `sessions(...)`, or `counts(...)`, which goes by their number. `aggregation`: see `Aggregation`.

        A window fires once, when the watermark has reached its end. `late`: of a message whose windows have all fired:
        "drop" (counted), "fire" (a result at once, of it alone), "oldest" (into the oldest open window), "side" (to the
        stream `.late`). `emit_empty`: also the windows without messages between a key's open ones.
        `early`: so long after a change (log clock), open windows give a result that is not `window.final`.
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
        """Each message with the row of a table that is loaded from elsewhere; at once. The stream needs no key.

        `load()`, or `load(spark)` with Spark's session, runs in the processor and gives an Arrow table, a pandas or a
        Spark DataFrame: at the start, and again each `reload_every`. Its columns are the fields of the class that
        `combine` takes second; more are left out. Each row has another value of the column `key`; `on`, a field of the
        message or a function of it, says which is the message's: by default the field of that name, else the key of
        the stream. `combine` makes the result, or None for none; with how="left" a message without a row gives
        `combine(message, None)`. What lies behind a record that names a new version sees that version, on every
        replay. A `load` that fails, or gives what is no such table, leaves the table as it was.
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
        given: object = right
        if not isinstance(given, Stream) or given.app is not self.app:
            raise ApplicationError(f"join of {self.name!r}: {given!r} is no stream of this application")
        node = make(self.node, given.node)
        return JoinedStream(self.app, self.app.add(node), node)

    def sink(
        self,
        name: str,
        *,
        encoder: Callable[[Message_co], bytes] | None = None,
        to: Destination | None = None,
        on_error: OnError = DEAD_LETTER,
    ) -> StreamEnd:
        """Delivers the stream's messages under a name; `encoder(message)` gives the bytes of each.

        `to` is a destination beside those that settings give (files, Redis); see `bettong.application.external`.
        `on_error` speaks of what the encoder cannot encode, and of what the destination refuses for good.
        """
        return StreamEnd(self.app.add(sink(self.node, name, encoder, to, on_error)))


@dataclass(frozen=True)
class LocalStream(Generic[Message_co]):
    """What `Stream.local` gives: `window` alone follows it."""

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

        Raises ApplicationError for sessions, counts and ephemeral windows, for sums of floats, and for what is marked
        `compiled`. A combination of your own has to give the same in whatever groups neighbours are combined.
        """
        nodes = local_windows(self.node, self.key, self.on_error, windows, aggregation, **options)
        return Stream(self.app, [self.app.add(each) for each in nodes][-1])

    if not TYPE_CHECKING:  # A type checker says by itself that there is no such method.

        def __getattr__(self, attribute: str) -> object:
            if hasattr(Stream, attribute):
                raise ApplicationError(
                    f"{attribute!r} after local({key_name(self.key)!r}) of {self.node.name!r}: only window(...) follows"
                    " local(...); put key_by(...) in its place"
                )
            raise AttributeError(f"what local(...) gives has no attribute {attribute!r}")


@dataclass(frozen=True, repr=False)
class WindowedStream(Stream[Message_co], Generic[Message_co, Taken_co]):
    """The results of windows of messages; see `Stream.window`."""

    late_node: LateMessages | None = field(compare=False)

    @property
    def late(self) -> Stream[Taken_co]:
        """The late messages, as they came: a stream of a window with late="side"."""
        if self.late_node is None:
            raise ApplicationError(f'window {self.name!r}: .late: give it late="side"')
        return Stream(self.app, self.late_node)


@dataclass(frozen=True, repr=False)
class JoinedStream(Stream[Message_co], Generic[Message_co, Taken_co, Right_co]):
    """The results of pairs of messages; see `Joinable`."""

    join_node: Joined = field(compare=False)

    @property
    def late(self) -> Stream[Taken_co | Right_co]:
        """The late messages of both sides, as they came. Those of one side alone: `late_left`, `late_right`."""
        left, right = self.late_left, self.late_right
        found = self.app.nodes.get(f"{left.name}+{right.name}")
        return Stream(self.app, found) if isinstance(found, Merged) else left.merge(right)

    @property
    def late_left(self) -> Stream[Taken_co]:
        """The late messages of the left side, as they came."""
        return self._late(is_right=False)

    @property
    def late_right(self) -> Stream[Right_co]:
        """The late messages of the right side, as they came."""
        return self._late(is_right=True)

    def _late(self, *, is_right: bool) -> Stream[Any]:
        made = late_side(self.join_node, is_right=is_right)
        known = self.app.nodes.get(made.name)
        return Stream(self.app, known if isinstance(known, LateSide) else self.app.add(made))


@dataclass(frozen=True, repr=False)
class StreamEnd:
    """What `Stream.sink` gives: nothing can follow it."""

    node: Sink

    def __repr__(self) -> str:
        return f"sink {self.name!r}"

    @property
    def name(self) -> str:
        """The sink's name."""
        return self.node.name

    if not TYPE_CHECKING:  # A type checker says by itself that there is no such method.

        def __getattr__(self, attribute: str) -> object:
            if hasattr(Stream, attribute):
                raise ApplicationError(
                    f"{attribute!r} after sink {self.name!r}: nothing follows a sink;"
                    f" call it on {self.node.parent.name!r}"
                )
            raise AttributeError(f"a sink has no attribute {attribute!r}")
