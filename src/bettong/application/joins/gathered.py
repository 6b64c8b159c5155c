"""The aggregation of a window join: the messages of a window, by side."""

from typing import Any

from bettong.application.windows.window import Window


class Gathered:
    """Accumulators are [messages of the left side, those of the right one]. See Aggregation."""

    def initial(self) -> list[list[Any]]:
        """See Aggregation."""
        return [[], []]

    def update(self, accumulator: list[list[Any]], message: tuple[bool, Any]) -> list[list[Any]]:
        """See Aggregation. `message`: whether it is of the right side, and the message."""
        accumulator[message[0]].append(message[1])
        return accumulator

    def combine(self, left: list[list[Any]], right: list[list[Any]]) -> list[list[Any]]:
        """See Aggregation."""
        return [[*left[0], *right[0]], [*left[1], *right[1]]]

    def output(self, key: Any, accumulator: list[list[Any]], window: Window) -> Any:  # noqa: ARG002
        """See Aggregation."""
        return accumulator
