"""Streams: what an application is described with. Pure data; nothing here runs a message.

Each stream has a name, unique in its application, the schema of its messages, and the stream(s) that it comes
from. A stream with a key keeps it: `map`, `filter` and `flat_map` change messages, never the key that they
were partitioned by; only `key_by` gives a new one (and with it a new stage, see `plan`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from bettong.application.callables import name_of
from bettong.application.codecs import Pickle, check_codec
from bettong.application.event_time import EventTime
from bettong.application.execution_mode import ExecutionMode, common_mode, execution_mode_of
from bettong.application.external.destination import Destination, check_destination
from bettong.application.key import Key, check_key
from bettong.application.lifetime import Lifetime, TtlClock, check_states, lifetime_of
from bettong.application.on_error import DEAD_LETTER, OnError, check_on_error
from bettong.application.signatures import (
    check_function,
    check_version,
    flat_map_output,
    map_output,
    predicate,
    stateful_output,
)
from bettong.application.timers import StateTimer, state_timers
from bettong.errors import ApplicationError
from bettong.schema.schema import Schema

if TYPE_CHECKING:
    from bettong.application.application import Application
    from bettong.application.external.transport import Transport
    from bettong.schema.decoded import Decoder

# Of a message and a state; a vectorized one takes a third argument, see `execution_mode.vectorized`.
Handler = Callable[..., Any]
_Stream = TypeVar("_Stream", bound="Stream")


@dataclass(frozen=True, eq=False)
class Stream:
    """A named stream of messages of one schema (`merge` alone may mix several)."""

    app: Application = field(repr=False)
    name: str
    schema: Schema | None
    keyed: bool

    def map(
        self,
        function: Callable[[Any], Any],
        *,
        name: str | None = None,
        on_error: OnError = DEAD_LETTER,
    ) -> Mapped:
        """One message out for each message in. `function(message)` says by annotation what it returns.

        `on_error`, here and below: what becomes of a message for which the function raises, or returns what does
        not fit (see `application.on_error`).
        """
        name = name or name_of(function)
        check_on_error(f"map {name!r}", on_error)
        output = map_output(name, function, self._one_schema(name))
        return self.app.add(Mapped(self.app, name, output.schema, self.keyed, self, function, on_error))

    def filter(
        self,
        function: Callable[[Any], bool],
        *,
        name: str | None = None,
        on_error: OnError = DEAD_LETTER,
    ) -> Filtered:
        """Keeps the messages for which `function(message)` is true."""
        name = name or name_of(function)
        check_on_error(f"filter {name!r}", on_error)
        schema = self._one_schema(name)
        predicate(name, function, schema)
        return self.app.add(Filtered(self.app, name, schema, self.keyed, self, function, on_error))

    def flat_map(
        self,
        function: Callable[[Any], Any],
        *,
        name: str | None = None,
        on_error: OnError = DEAD_LETTER,
    ) -> FlatMapped:
        """Any number of messages out for each one in: `function(message) -> Iterable[Message]`."""
        name = name or name_of(function)
        check_on_error(f"flat_map {name!r}", on_error)
        output = flat_map_output(name, function, self._one_schema(name))
        return self.app.add(FlatMapped(self.app, name, output.schema, self.keyed, self, function, on_error))

    def key_by(self, key: Key, *, name: str | None = None, on_error: OnError = DEAD_LETTER) -> Keyed:
        """Partitions the stream anew by a field, or by `function(message) -> str | int | bytes`.

        What follows is a new stage behind a topic of its own, so that its order is part of the log.
        """
        # A merged stream is named `a+b`, but what enters a stage names a topic.
        name = name or f"{self.name}-by-{key if isinstance(key, str) else name_of(key)}".replace("+", "-")
        check_on_error(f"key_by {name!r}", on_error)
        schema = self._one_schema(name)
        check_key(name, key, schema)
        return self.app.add(
            Keyed(self.app, name, schema, keyed=True, parent=self, key=key, on_error=on_error)
        )

    def merge(self, *others: Stream) -> Merged:
        """This stream and others as one; the log's order decides who comes first.

        Messages that come from one message go in the order of the streams here.
        """
        parts = (self, *others)
        for other in others:
            _check_part(self, other)
        _check_once(parts)
        schemas = {part.schema for part in parts}
        schema = schemas.pop() if len(schemas) == 1 else None
        name = "+".join(part.name for part in parts)
        while name in self.app.nodes:
            name += "+"
        return self.app.add(Merged(self.app, name, schema, self.keyed, parts))

    def stateful(
        self,
        function: Handler | Mapping[_Stream, Handler],
        *,
        state: Callable[[], Any],
        name: str | None = None,
        timers: Mapping[str, Handler] | None = None,
        ttl: timedelta | None = None,
        ttl_clock: TtlClock = "log",
        delete_when: Callable[[Any], bool] | None = None,
        version: int = 1,
        migrate: Callable[[Any, int], Any] | None = None,
        on_error: OnError = DEAD_LETTER,
        state_codec: type[Pickle] | None = None,
    ) -> Stateful:
        """Folds each key's messages into a state of its own: `function(message, state) -> output or None`.

        `state()` makes the state of a new key (and is called once here); the function changes it in place. Streams of
        different schemas need one function each: `stateful({quotes: on_quote, orders: on_order}, state=...)`.
        Saved states go on only under the same messages, key, fields of the state and `version` (1 to 2**31; raise it
        when a function changes so that old states mean something else). `migrate(old, version)` makes a state
        of one that was saved differently: its fields are attributes of `old`.
        `timers={"field": function}`: `function(fired, state)` is called when the time in a `Timer` or `LogTimer` field
        of the state has come, and gives what the others give; see `application.timers`.
        `ttl`: a state ends when the log clock (with `ttl_clock="event"`: the watermark) is so much past the key's last
        message. `delete_when(state)`, asked after each call that did not raise, ends it, too; see `Stateful`.
        What a function has changed before it raises stays, unless `on_error="stop"`.
        States hold plain data (text, dates, lists, numpy arrays ...), and dataclasses, NamedTuples and Enums of the
        application's modules; others need `state_codec=bettong.Pickle`. What one holds twice is two objects when read.
        """
        handlers: Mapping[Any, Handler] = function if isinstance(function, Mapping) else {self: function}
        name = name or "-".join(dict.fromkeys(name_of(each) for each in handlers.values()))
        owner = f"stateful {name!r}"
        _check_stateful(name, self, state, on_error)
        check_version(name, version, migrate)
        by_schema, firing = _handlers_by_schema(name, self, handlers), state_timers(owner, state, timers)
        mode = common_mode(owner, [*by_schema.values(), *(timer.function for timer in firing)])
        check_codec(name, state_codec, mode)
        output = stateful_output(name, by_schema, state, firing)
        check_states(owner, state, delete_when, mode)
        return self.app.add(
            Stateful(
                self.app,
                name,
                output.schema,
                keyed=True,
                parent=self,
                handlers=by_schema,
                state=state,
                many=output.many,
                way=mode,
                timers=firing,
                lifetime=lifetime_of(owner, ttl, ttl_clock),
                delete_when=delete_when,
                version=version,
                migrate=migrate,
                on_error=on_error,
                state_codec=state_codec,
            )
        )

    def sink(
        self,
        name: str,
        *,
        encoder: Callable[[Any], bytes] | None = None,
        to: Destination | None = None,
        on_error: OnError = DEAD_LETTER,
    ) -> Sink:
        """Delivers the stream's messages under a name; `encoder(message)` gives the bytes of each.

        `to` is a destination beside those that settings give (files, Redis); see `bettong.application.external`.
        `on_error` speaks of what the encoder cannot encode, and of what the destination refuses for good.
        """
        check_on_error(f"sink {name!r}", on_error)
        if encoder is not None:
            message = self._one_schema(name).message
            check_function(f"encoder of sink {name!r}", encoder, takes=message, returns=(bytes,))
        if to is not None:
            check_destination(name, to, self.schema, encoded=encoder is not None)
        return self.app.add(Sink(self.app, name, self, encoder, on_error, to))

    def _one_schema(self, consumer: str) -> Schema:
        if self.schema is None:
            raise ApplicationError(
                f"{consumer!r}: {self.name!r} mixes schemas; use stateful({{stream: function, ...}})"
            )
        return self.schema


@dataclass(frozen=True, eq=False)
class Uniform(Stream):
    """A stream whose messages have one schema: every stream but a merged one."""

    schema: Schema


@dataclass(frozen=True, eq=False)
class Source(Uniform):
    """Where messages come in. Without a key, whole frames are spread over the partitions."""

    key: Key | None
    decoder: Decoder | None
    on_error: OnError = DEAD_LETTER
    from_: Transport | None = None
    event_time: EventTime = field(default_factory=EventTime)


@dataclass(frozen=True, eq=False)
class Stateless(Uniform):
    """A computation whose function takes a message alone."""

    parent: Stream
    function: Callable[[Any], Any]
    on_error: OnError = DEAD_LETTER

    @property
    def way(self) -> ExecutionMode:
        """How the function is run."""
        return execution_mode_of(self.function)


class Mapped(Stateless):
    """See `Stream.map`."""


class Filtered(Stateless):
    """See `Stream.filter`."""


class FlatMapped(Stateless):
    """See `Stream.flat_map`."""


@dataclass(frozen=True, eq=False)
class Keyed(Uniform):
    """See `Stream.key_by`."""

    parent: Stream
    key: Key
    on_error: OnError = DEAD_LETTER


@dataclass(frozen=True, eq=False)
class Merged(Stream):
    """See `Stream.merge`."""

    parts: tuple[Stream, ...]


@dataclass(frozen=True, eq=False)
class Stateful(Uniform):
    """See `Stream.stateful`. `many`: the functions return iterables of messages. `way`: how all of them are run.

    `lifetime`: how long a state lives; None: for ever. `delete_when` is marked as the
    functions are, and not for vectorized ones; what it raises counts as if the function had raised it. A state that has
    ended is a fresh one at the key's next message, in the same frame, too.
    """

    parent: Stream
    handlers: Mapping[Schema, Handler]
    state: Callable[[], Any]
    many: bool
    way: ExecutionMode
    timers: tuple[StateTimer, ...]
    lifetime: Lifetime | None
    delete_when: Callable[[Any], bool] | None
    version: int
    migrate: Callable[[Any, int], Any] | None
    on_error: OnError = DEAD_LETTER
    state_codec: type[Pickle] | None = None


@dataclass(frozen=True, eq=False)
class Sink:
    """The end of a stream; nothing can follow it."""

    app: Application = field(repr=False)
    name: str
    parent: Stream
    encoder: Callable[[Any], bytes] | None
    on_error: OnError = DEAD_LETTER
    to: Destination | None = None

    def __getattr__(self, attribute: str) -> NoReturn:
        if hasattr(Stream, attribute):
            raise ApplicationError(
                f"{attribute!r} after sink {self.name!r}: nothing follows a sink;"
                f" call it on {self.parent.name!r}"
            )
        raise AttributeError(f"a sink has no attribute {attribute!r}")


Node = Stream | Sink


def parents_of(node: Node) -> tuple[Stream, ...]:
    """The streams that a node reads: none for a source."""
    if isinstance(node, Merged):
        return node.parts
    if isinstance(node, Stateless | Keyed | Stateful | Sink):
        return (node.parent,)
    return ()


def _check_stateful(name: str, stream: Stream, state: object, on_error: OnError) -> None:
    """Refuses a stream without a key, what makes no states, and what is no policy."""
    check_on_error(f"stateful {name!r}", on_error)
    if not stream.keyed:
        raise ApplicationError(f"stateful {name!r}: {stream.name!r} has no key; call key_by first")
    if not callable(state):
        raise ApplicationError(f"stateful {name!r}: state={state!r} cannot be called; give a class")


def _check_part(stream: Stream, other: object) -> None:
    """Refuses what cannot be merged with a stream."""
    if not isinstance(other, Stream) or other.app is not stream.app:
        raise ApplicationError(f"merge of {stream.name!r}: {other!r} is no stream of this application")
    if other.keyed != stream.keyed:
        keyless = other.name if stream.keyed else stream.name
        raise ApplicationError(f"merge of {stream.name!r}: {keyless!r} has no key; call key_by first")


def _check_once(parts: tuple[Stream, ...]) -> None:
    """Refuses a stream that would be merged twice, itself or within a merged one."""
    found = [each for part in parts for each in _merged_parts(part, {})]
    for each in found:
        if found.count(each) > 1:
            raise ApplicationError(
                f"merge of {parts[0].name!r}: {each.name!r} is given twice; a message of it would come twice"
            )


def _handlers_by_schema(
    name: str, stream: Stream, handlers: Mapping[Stream, Handler]
) -> dict[Schema, Handler]:
    """The function for each schema that reaches a stateful computation."""
    parts = list(_merged_parts(stream, handlers))
    missing = [part.name for part in parts if part not in handlers]
    strange = [str(getattr(key, "name", key)) for key in handlers if key not in parts]
    if missing or strange:
        raise ApplicationError(
            f"stateful {name!r}: needs one function for each of {', '.join(part.name for part in parts)}"
            + (f"; missing: {', '.join(missing)}" if missing else "")
            + (f"; not merged here: {', '.join(strange)}" if strange else "")
        )
    found: dict[Schema, Stream] = {}
    for part in parts:
        if part.schema is None:
            raise ApplicationError(
                f"stateful {name!r}: {part.name!r} mixes schemas; give a function for each stream that it merges"
            )
        earlier = found.setdefault(part.schema, part)
        if handlers[part] is not handlers[earlier]:
            raise ApplicationError(
                f"stateful {name!r}: {earlier.name!r} and {part.name!r} have the same schema"
                f" {part.schema.name}; give them one function"
            )
    return {schema: handlers[part] for schema, part in found.items()}


def _merged_parts(stream: Stream, stops: Mapping[Stream, object]) -> Iterator[Stream]:
    """A stream, or what it merges, down to the streams in `stops`."""
    if isinstance(stream, Merged) and stream not in stops:
        for part in stream.parts:
            yield from _merged_parts(part, stops)
    else:
        yield stream
