"""`check`: a case has the same results however its messages are divided into frames and partitions, at each speed,
and through a crash at every record and repetitions; else it reports the smallest case that has not, as a test.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from bettong.application.application import Application
from bettong.testing.inputs import Step, read_inputs
from bettong.testing.memory_partition import ReplayError
from bettong.testing.outcome import Outcome, difference_of
from bettong.testing.pasted_test import comparing_test
from bettong.testing.running import AppSession, ReadyApplication
from bettong.testing.smallest import find, require_hypothesis, smallest
from bettong.testing.variations import Variation, one_message_a_frame, variations

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


_ORDER_OF_PARTITIONS = (
    "\n\nWhich messages are late after a key_by depends on the order in which the partitions before it are folded,"
    " as in production (docs/testing.md). To avoid that, give the source an out_of_order=, or the window a delay=,"
    " within which no message is late."
)


class CheckError(AssertionError):
    """Results depend on something that must make no difference. `test`: the smallest case that shows it, as a test."""

    def __init__(self, text: str, test: str) -> None:
        super().__init__(text)
        self.test = test


def check(app: Application, case: Iterable[object] | SearchStrategy[Any], *, examples: int = 50) -> None:
    """Runs a case in every way that must make no difference, and compares outputs, dead letters, states and timers.

    One message per frame, all in one, and divided at random; 1 to 5 partitions; compiled functions as Python and
    compiled; a crash, and a restart from saved states, at every record; frames that come twice, or are resent by a
    client that reconnects. The order of messages in a sink is not compared.

    `case`: inputs, see `run`; or a strategy of hypothesis that draws such lists, of which `examples` are tried.
    Raises CheckError, an AssertionError whose text ends with a test to paste; CaseError for inputs that do not fit the
    application, and where hypothesis is not installed (pip install 'bettong[testing]').
    """
    require_hypothesis()
    checker = _Checker(app)
    steps: Sequence[Step] | None
    if isinstance(case, Iterable):
        steps = checker.read(case)
        if checker.first_fault(steps) is None:
            return
    else:
        steps = find(
            case.map(checker.read), lambda drawn: checker.first_fault(drawn) is not None, examples=examples
        )
        if steps is None:
            return
    fault = checker.first_fault(steps)
    if fault is None:
        raise CheckError(
            "the same case fails in one run and not in another: a function is not deterministic", ""
        )
    checker.report(*smallest(steps, fault, checker.fails))


class _Checker:
    """One application, prepared once for each speed."""

    def __init__(self, app: Application) -> None:
        self._app = app
        self._python = ReadyApplication(app, compiled=False)
        self._compiled = ReadyApplication(app, compiled=True) if self._python.has_compiled else self._python

    def read(self, inputs: Iterable[object]) -> list[Step]:
        """A case of one message per frame."""
        return one_message_a_frame(read_inputs(self._python.plan, inputs))

    def first_fault(self, case: Sequence[Step]) -> Variation | None:
        """The first variation whose outcome differs from that of the case itself."""
        expected = self._outcome(case, Variation(""))
        for variation in variations(case, has_compiled=self._python.has_compiled):
            if self._difference(expected, case, variation) is not None:
                return variation
        return None

    def fails(self, case: Sequence[Step], variation: Variation) -> bool:
        """Whether a variation's outcome differs from the case's."""
        return self._difference(self._outcome(case, Variation("")), case, variation) is not None

    def report(self, case: Sequence[Step], variation: Variation) -> None:
        """Raises the CheckError for a case that fails."""
        expected = self._outcome(case, Variation(""))
        difference = self._difference(expected, case, variation) or (
            "not in each run: a function is not deterministic, or depends on earlier runs"
        )
        if variation.partitions > 1 and self._is_late_after_key_by(expected):
            difference += _ORDER_OF_PARTITIONS
        test = comparing_test(self._app, case, variation)
        raise CheckError(
            f"results depend on {variation.what}\n\n{difference}\n\nThe smallest case that shows it, as a test:"
            f"\n\n{test}",
            test,
        )

    def _is_late_after_key_by(self, outcome: Outcome) -> bool:
        """Whether a message was late, in an application that judges lateness in a stage after another one."""
        outputs = [output for stage in self._python.plan.stages for output in stage.outputs]
        return any(each.judges_lateness for each in outputs) and outcome.late + outcome.partly_late > 0

    def _outcome(self, case: Sequence[Step], variation: Variation) -> Outcome:
        session = AppSession(
            self._compiled if variation.compiled else self._python,
            partitions=variation.partitions,
            at_each_record=variation.at_each_record,
        )
        session.step(*variation.inputs(case))
        return session.finish()

    def _difference(self, expected: Outcome, case: Sequence[Step], variation: Variation) -> str | None:
        try:
            return difference_of(self._outcome(case, variation), expected)
        except ReplayError as error:
            return str(error)
