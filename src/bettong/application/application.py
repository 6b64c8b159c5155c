"""The application: a named set of streams from sources to sinks."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal, TypeVar

from bettong.application.callables import check_plain
from bettong.application.event_time import IDLE_TIMEOUT, MAX_LEAD, event_time_of
from bettong.application.external.transport import Transport, check_transport
from bettong.application.key import check_key
from bettong.application.keys import check_keys, check_window_key
from bettong.application.nodes.computation import Computation
from bettong.application.nodes.merged import Merged
from bettong.application.nodes.node import StreamNode
from bettong.application.nodes.sink import Sink
from bettong.application.nodes.source import Source
from bettong.application.nodes.stateful import Stateful
from bettong.application.on_error import DEAD_LETTER, OnError, check_on_error
from bettong.application.streams import Stream
from bettong.application.windows.windowed import Windowed
from bettong.errors import ApplicationError, SchemaError
from bettong.schema.decoded import Decoder
from bettong.schema.json_objects import JsonObjects
from bettong.schema.key_types import KeyValue
from bettong.schema.schema import schema_of

# No dot: it separates the parts of topic names, and two applications must never share a topic.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")

# Names that topics and origins of Bettong itself use.
RESERVED = frozenset({"dead-letters"})

Node = StreamNode | Sink
_Node = TypeVar("_Node", bound=Node)
Message = TypeVar("Message")


@dataclass
class Application:
    """A description, built up by calls and checked at each; it runs nothing.

    `name` is part of topics, keys in Redis and metrics: letters, digits, `_` and `-`.
    """

    name: str
    nodes: dict[str, Node] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        _check_name("application", self.name)

    def source(
        self,
        name: str,
        *,
        schema: type[Message],
        key: str | tuple[str, ...] | Callable[[Message], KeyValue] | None = None,
        decoder: Decoder | None = None,
        format: Literal["json"] | None = None,  # noqa: A002 - the word of the command line
        on_error: OnError = DEAD_LETTER,
        from_: Transport | None = None,
        event_time: str | Callable[[Message], int] | None = None,
        out_of_order: timedelta = timedelta(0),
        idle_timeout: timedelta | None = IDLE_TIMEOUT,
        max_lead: timedelta = MAX_LEAD,
    ) -> Stream[Message]:
        """Adds a source of messages of a dataclass.

        `key` is a field's name, a tuple of such names, or a function of the message: all messages of a key go to one
        partition and share a state. `decoder` decodes bytes from clients into messages; `format="json"` is the decoder
        of JSON objects of the fields; without one, clients send columns. `on_error`: what to do with a message that the
        decoder or the key's function refuses.
        `from_` is read in addition to what clients send: `KafkaTopic("orders")`; see `bettong.application.external`.

        `event_time`: a field, or a function of the message, with the Unix time in nanoseconds when it happened; by
        default the time of ingestion. Messages up to `out_of_order` older than the newest of their client are not late.
        A client that is silent for `idle_timeout` does not hold the watermark back (None: it does for ever). A message
        more than `max_lead` ahead of its time of ingestion is refused.
        """
        check_on_error(f"source {name!r}", on_error)
        try:
            layout = schema_of(schema)
        except SchemaError as error:
            raise ApplicationError(f"source {name!r}: {error}") from None
        if key is not None:
            check_key(name, key, layout)
        if format is not None:
            decoder = _decoder_of(name, format, decoder)
        if decoder is not None:
            if isinstance(decoder, type) or not isinstance(decoder, Decoder):
                raise ApplicationError(
                    f"source {name!r}: decoder={decoder!r} is no decoder; expected bettong.each(function), packed(...),"
                    " tagged({...}), or format='json' instead"
                )
            check_plain(f"decoder of {name!r}", decoder.decode)
            decoder.check(name, layout)
        if from_ is not None:
            check_transport(name, from_, decodes=decoder is not None)
        times = event_time_of(
            name, layout, event_time, out_of_order=out_of_order, idle_timeout=idle_timeout, max_lead=max_lead
        )
        node = Source(name, layout, key is not None, key, decoder, on_error, from_, times)
        return Stream(self, self.add(node))

    def add(self, node: _Node) -> _Node:
        """Adds a node: the methods of streams call it. Raises ApplicationError for a name that is taken or invalid."""
        if not isinstance(node, Merged):
            _check_name(type(node).__name__.lower(), node.name)
        if node.name in RESERVED:
            raise ApplicationError(f"the name {node.name!r} is Bettong's own; choose another")
        if node.name in self.nodes:
            remedy = (
                "choose another: dead letters and metrics know each by its name alone"
                if isinstance(node, Source | Sink)
                else "give name=... to tell them apart"
            )
            known = self.nodes[node.name]
            what = known.method if isinstance(known, Computation) else type(known).__name__.lower()
            raise ApplicationError(f"the name {node.name!r} is taken by a {what} of {self.name!r}; {remedy}")
        self.nodes[node.name] = node
        return node

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources, in the order in which they were added."""
        return tuple(node for node in self.nodes.values() if isinstance(node, Source))

    @property
    def sinks(self) -> tuple[Sink, ...]:
        """The sinks, in the order in which they were added."""
        return tuple(node for node in self.nodes.values() if isinstance(node, Sink))

    def check(self) -> None:
        """Raises ApplicationError when a stream leads to no sink, there is no source, or keys differ in type."""
        if not self.sources:
            raise ApplicationError(f"application {self.name!r} has no source: add one with .source(...)")
        used = {parent.name for node in self.nodes.values() for parent in node.parents}
        for node in self.nodes.values():
            if not isinstance(node, Sink) and node.name not in used:
                raise ApplicationError(
                    f"{type(node).__name__.lower()} {node.name!r} leads to no sink: end it with .sink(...)"
                )
            if isinstance(node, Stateful):
                check_keys(node)
            if isinstance(node, Windowed):
                check_window_key(node)


def _decoder_of(source: str, kind: str, decoder: Decoder | None) -> Decoder:
    """The decoder that `format=` selects. Raises ApplicationError."""
    if decoder is not None:
        raise ApplicationError(
            f"source {source!r}: format= and decoder= both say how bytes are read; give one"
        )
    if kind != "json":
        raise ApplicationError(
            f"source {source!r}: format {kind!r}: expected 'json'; other bytes are read by decoder=, such as"
            " each(function)"
        )
    return JsonObjects()


def _check_name(what: str, name: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ApplicationError(
            f"{what} name {name!r}: expected 1 to 100 letters, digits, '_' or '-',"
            " starting with a letter or digit"
        )
