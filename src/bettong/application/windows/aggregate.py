"""The interface of aggregates: one field of the result of `bettong.aggregate`, a fold of a value of each message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol, TypeAlias, runtime_checkable

# A field's name, or a function of the message.
Read: TypeAlias = str | Callable[[Any], Any]
# A bool field's name, or a predicate of the message.
Condition: TypeAlias = str | Callable[[Any], bool]


@runtime_checkable
class Aggregate(Protocol):
    """A fold of values. Messages for which `where` is false are left out.

    The result may depend on nothing but the values: windows are folded again after a crash.
    """

    # Whether there is a result of no values.
    is_of_none: ClassVar[bool]
    # Whether `add` changes the accumulator. Then it must not raise: `value` refuses what does not fit.
    adds_in_place: ClassVar[bool]
    # The kinds of fields that it may read, (): any; and those that can hold its result, (): that of what it reads.
    of_kinds: ClassVar[tuple[str, ...]]
    result_kinds: ClassVar[tuple[str, ...]]

    @property
    def where(self) -> Condition | None:
        """Which messages are added; None: all."""

    @property
    def reads(self) -> Mapping[str, Read]:
        """What it reads of a message, by argument."""

    @property
    def options(self) -> str:
        """Other arguments that determine its accumulators; "" for none."""

    def value(self, *args: Any, **kwargs: Any) -> Any:
        """The value that is added for a message, made from what was read of it. Raises if it cannot be added.

        The signature admits any parameters.
        """

    def first(self, value: Any, /) -> Any:
        """The accumulator of one value."""

    def add(self, accumulator: Any, value: Any, /) -> Any:
        """The accumulator with one more value."""

    def join(self, left: Any, right: Any, /) -> Any:
        """The accumulator of both, `left` being of the earlier values. Changes neither."""

    def result(self, accumulator: Any, /) -> Any:
        """The field's value; where `is_of_none`, None stands for the accumulator of no values."""
