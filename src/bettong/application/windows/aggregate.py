"""One field of what `bettong.aggregate` gives: a fold of what is read of each message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol, TypeAlias, runtime_checkable

# A field's name, or a function of the message.
Read: TypeAlias = str | Callable[[Any], Any]
# The same, of a bool.
Condition: TypeAlias = str | Callable[[Any], bool]


@runtime_checkable
class Aggregate(Protocol):
    """A fold of values. Those of messages that `where` says no to are left out.

    What is added may not depend on anything but the values: windows are folded again after a crash.
    """

    # Whether there is a result of no value.
    is_of_none: ClassVar[bool]
    # Whether `add` changes the accumulator. Then it raises nothing: `value` has refused what does not fit.
    adds_in_place: ClassVar[bool]
    # The kinds of field that it may be of, and those that can hold its result; (): any.
    of_kinds: ClassVar[tuple[str, ...]]
    result_kinds: ClassVar[tuple[str, ...]]

    @property
    def where(self) -> Condition | None:
        """Of which messages; None: of all."""

    @property
    def reads(self) -> Mapping[str, Read]:
        """What of a message it needs, by the argument that says so."""

    @property
    def options(self) -> str:
        """What else decides what accumulators are of; "" for nothing."""

    def value(self, *args: Any, **kwargs: Any) -> Any:
        """What is added of a message, of which it takes what was read. Raises for what cannot be added.

        So written it may have any parameters.
        """

    def first(self, value: Any, /) -> Any:
        """The accumulator of one value."""

    def add(self, accumulator: Any, value: Any, /) -> Any:
        """The accumulator with one value more."""

    def join(self, left: Any, right: Any, /) -> Any:
        """That of both, of which `left` is of the earlier ones; changes neither."""

    def result(self, accumulator: Any, /) -> Any:
        """The field's value; where `is_of_none`, None stands for the accumulator of no value."""
