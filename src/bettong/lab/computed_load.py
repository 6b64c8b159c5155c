"""A load whose expected results are computed: the application runs over the same messages in memory.

messages ─> bettong.testing ─> the bytes that each sink must deliver, in any order
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import cycle

from bettong.application.application import Application
from bettong.application.plan import plan
from bettong.errors import LabError, SettingsError
from bettong.lab.answers.answer import ReferenceInput, expected_results, message_numbers
from bettong.lab.answers.determined import clock_reasons, order_reasons
from bettong.lab.load import LoadPart, SinkResults

_SHOWN_CHARACTERS = 200


class ComputedLoad:
    """See `bettong.lab.load.LabLoad` and `TopicLoad`. One round; a load in Python may return it, too.

    `parts`: all messages, one part for each source. `partitions`, `compiled`: as in the run file. `any_order`: results
    depend neither on the order in which messages of different sources (or, behind `key_by`, of different keys) are
    processed, nor on how messages are grouped into frames. Raises SettingsError if results may depend on that and
    `any_order` is not set, and if they depend on when messages arrive.
    """

    def __init__(
        self,
        app: Application,
        parts: Sequence[LoadPart],
        *,
        partitions: int = 16,
        compiled: bool = True,
        any_order: bool = False,
    ) -> None:
        fed = [part.source for part in parts if part.messages]
        if len(set(fed)) < len(fed):
            raise SettingsError(
                f"parts of {', '.join(fed)}: give each source one part, several have no order"
            )
        self._input = ReferenceInput(app, plan(app), [part for part in parts if part.messages], compiled)
        if by_clock := clock_reasons(self._input.planned, fed):
            raise SettingsError(
                f"the expected results cannot be computed: {'; '.join(by_clock)}: write the load in Python, with its"
                " expected results"
            )
        self._by_order = order_reasons(self._input.planned, fed, partitions)
        if self._by_order and not any_order:
            raise SettingsError(
                f"the expected results depend on the order of messages: {'; '.join(self._by_order)}. If results are the"
                " same in any order, set any_order = true; else write the load in Python, with its expected results"
            )

    def first(self) -> Sequence[LoadPart]:
        """Nothing is processed before the clock starts."""
        return []

    def rounds(self) -> Iterator[Sequence[LoadPart]]:
        """All messages in one round."""
        yield self._input.parts

    @cached_property
    def expected(self) -> Mapping[str, Sequence[bytes]]:
        """By sink, the application's results in memory. Takes some 10 s for a million messages."""
        return expected_results(self._input)

    def result_bytes(self) -> Mapping[str, int]:
        """By sink, the bytes of all expected results."""
        return {sink: sum(map(len, results)) for sink, results in self.expected.items()}

    def wrong(self, results: Mapping[str, SinkResults]) -> str:
        """Each result must be there as often as in memory, byte for byte."""
        faults = [
            fault
            for sink, expected in self.expected.items()
            if (fault := _difference(Counter(results[sink].each), Counter(expected)))
        ]
        if faults and self._by_order:
            faults.append(
                f"or results depend on the order of messages, although any_order = true: {self._by_order[0]}"
            )
        return "; ".join(faults)

    def message_of(self, result: bytes) -> int:
        """By processing the messages in memory one by one; equal results are attributed in turn."""
        if result not in self._message_numbers:
            raise LabError(
                f"results depend on how messages are grouped into frames, such as {_abbreviated(result)}"
            )
        return next(self._message_numbers[result])

    @cached_property
    def _message_numbers(self) -> Mapping[bytes, Iterator[int]]:
        return {result: cycle(found) for result, found in message_numbers(self._input).items()}


def _difference(found: Counter[bytes], expected: Counter[bytes]) -> str:
    texts = [
        f"{each.total():,} {what}, such as {_abbreviated(next(iter(each)))}"
        for each, what in (
            (expected - found, "are missing"),
            (found - expected, "were not expected"),
        )
        if each
    ]
    return f"of {expected.total():,} expected results {', and '.join(texts)}" if texts else ""


def _abbreviated(result: bytes) -> str:
    text = result.decode(errors="replace").rstrip("\n")
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"
