"""`Stream.stateful`, with overloads for its execution modes and for the number of results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack, overload

from bettong.application.callables import check_options
from bettong.application.execution_mode import RowIndexes
from bettong.application.nodes.stateful import Handler, StatefulOptions

if TYPE_CHECKING:
    from bettong.application.streams import Stream

Message_co = TypeVar("Message_co", covariant=True)
Result = TypeVar("Result")
State = TypeVar("State")


class Foldable(Generic[Message_co]):
    """The method `stateful` of a stream with a key."""

    @overload
    def stateful(
        self,
        function: Callable[[Message_co, State], None],  # only its timers return messages
        *,
        state: Callable[[], State],
        **options: Unpack[StatefulOptions[State]],
    ) -> Stream[Any]: ...

    @overload
    def stateful(
        self,
        function: Callable[[Message_co, State, RowIndexes], tuple[Result, RowIndexes]],
        *,
        state: Callable[[], State],
        **options: Unpack[StatefulOptions[State]],
    ) -> Stream[Result]: ...

    @overload
    def stateful(
        self,
        function: Callable[[Message_co, State, RowIndexes], Result | None],
        *,
        state: Callable[[], State],
        **options: Unpack[StatefulOptions[State]],
    ) -> Stream[Result]: ...

    @overload
    def stateful(
        self,
        function: Callable[[Message_co, State], Iterable[Result | None] | None],
        *,
        state: Callable[[], State],
        **options: Unpack[StatefulOptions[State]],
    ) -> Stream[Result]: ...

    @overload
    def stateful(
        self,
        function: Callable[[Message_co, State], Result | None],
        *,
        state: Callable[[], State],
        **options: Unpack[StatefulOptions[State]],
    ) -> Stream[Result]: ...

    @overload
    def stateful(
        self,
        function: Mapping[Stream[Any], Handler],
        *,
        state: Callable[[], Any],
        **options: Unpack[StatefulOptions[Any]],
    ) -> Stream[Any]: ...

    def stateful(
        self,
        function: Handler | Mapping[Any, Handler],
        *,
        state: Callable[[], Any],
        **options: Unpack[StatefulOptions[Any]],
    ) -> Stream[Any]:
        """Folds each key's messages into a state of its own: `function(message, state) -> output or None`.

        `state()` makes the state of a new key (and is called once here); the function changes it in place. Streams of
        different schemas need one function each, `stateful({quotes: on_quote, orders: on_order}, state=...)`, or one
        that takes all: `function(message: Quote | Order, state)`.
        Saved states are used again only with the same messages, key, fields of the state and `version` (1 to 2**31;
        raise it when a function changes so that old states mean something else). `migrate(old, version)` converts a
        state that was saved differently: its fields are attributes of `old`.
        `timers={"field": function}`: `function(fired, state)` is called when the time in a `Timer` or `LogTimer` field
        of the state is reached, and returns what the others return; see `application.timers`.
        `ttl`: a state ends when the log clock (with `ttl_clock="event"`: the watermark) is so much past the key's last
        message. `delete_when(state)`, called after each call that did not raise, ends it, too; see `Stateful`.
        What a function has changed before it raises stays, unless `on_error="stop"`.
        States hold plain data (text, dates, lists, numpy arrays ...), and dataclasses, NamedTuples and Enums of the
        application's modules; others need `state_codec=bettong.Pickle`. An object held twice is read back as two.
        """
        check_options(f"stateful of {self!r}", options, StatefulOptions)
        given = function if isinstance(function, Mapping) else {self: function}
        return self._folded(given, state=state, **options)

    def _folded(self, handlers: Mapping[Any, Handler], **options: Any) -> Stream[Any]:
        """Adds the node of these functions, by stream. `options`: of `stateful`. Raises ApplicationError."""
        raise NotImplementedError
