"""A load whose right answer is computed: the application runs over the same messages in memory.

parts ─> bettong.testing ─> the bytes that each sink must deliver, in any order
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import cycle

from bettong.application.application import Application
from bettong.application.plan import plan
from bettong.errors import LabError, SettingsError
from bettong.lab.answers.answer import Question, answer, numbers
from bettong.lab.answers.determined import clock_reasons, order_reasons
from bettong.lab.load import LoadPart, SinkResults

_SHOWN_CHARACTERS = 200


class ComputedLoad:
    """See `bettong.lab.load.LabLoad` and `TopicLoad`. One round; a load in Python may return it, too.

    `parts`: all messages, one part a source. `partitions`, `compiled`: as the run file says. `any_order`: results do
    not depend on the order in which messages of different sources, or, behind `key_by`, of different keys meet, nor on
    how they share frames. Raises SettingsError for an application of which that would have to be true and is not said,
    and for one whose results depend on when messages come.
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
            raise SettingsError(f"parts of {', '.join(fed)}: give a source one part, for they have no order")
        self._question = Question(app, plan(app), [part for part in parts if part.messages], compiled)
        if by_clock := clock_reasons(self._question.planned, fed):
            raise SettingsError(
                f"the right answer cannot be computed: {'; '.join(by_clock)}: write the load in Python, with what must"
                " come out"
            )
        self._by_order = order_reasons(self._question.planned, fed, partitions)
        if self._by_order and not any_order:
            raise SettingsError(
                f"the right answer depends on the order in which messages meet: {'; '.join(self._by_order)}. If results"
                " are the same in any order, say any_order = true; else write the load in Python, with what must come"
                " out"
            )

    def first(self) -> Sequence[LoadPart]:
        """Nothing."""
        return []

    def rounds(self) -> Iterator[Sequence[LoadPart]]:
        """All in one."""
        yield self._question.parts

    @cached_property
    def expected(self) -> Mapping[str, Sequence[bytes]]:
        """By sink, each result that the application puts out in memory. Takes some 10 s a million messages."""
        return answer(self._question)

    def result_bytes(self) -> Mapping[str, int]:
        """Of all that is expected."""
        return {sink: sum(map(len, results)) for sink, results in self.expected.items()}

    def wrong(self, results: Mapping[str, SinkResults]) -> str:
        """Each result must be there as often as it came out in memory, to the byte."""
        faults = [
            fault
            for sink, expected in self.expected.items()
            if (fault := _difference(Counter(results[sink].each), Counter(expected)))
        ]
        if faults and self._by_order:
            faults.append(
                f"or they depend on order, though any_order says that they do not: {self._by_order[0]}"
            )
        return "; ".join(faults)

    def message_of(self, result: bytes) -> int:
        """By what comes out in memory, message by message; where results are alike, one after the other."""
        if result not in self._numbers:
            raise LabError(f"results depend on how messages share frames, such as {_shown(result)}")
        return next(self._numbers[result])

    @cached_property
    def _numbers(self) -> Mapping[bytes, Iterator[int]]:
        return {result: cycle(found) for result, found in numbers(self._question).items()}


def _difference(found: Counter[bytes], expected: Counter[bytes]) -> str:
    texts = [
        f"{each.total():,} {what}, such as {_shown(next(iter(each)))}"
        for each, what in (
            (expected - found, "are missing"),
            (found - expected, "did not come out in memory"),
        )
        if each
    ]
    return f"of {expected.total():,} results {', and '.join(texts)}" if texts else ""


def _shown(result: bytes) -> str:
    text = result.decode(errors="replace").rstrip("\n")
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"
