"""`Stream.dead_letters`: the messages that a computation refused, as rows."""

from __future__ import annotations

from operator import attrgetter

import numpy as np

from bettong.application.nodes.dead_letter_messages import DeadLetter, DeadLetterMessages
from bettong.frames.columns import Columns
from bettong.worker.batch import Batch
from bettong.worker.operators.operator import Operator, OperatorParts, WithoutTime
from bettong.worker.output.dead_letters import DeadLetters, FiringDeadLetters, message_text


def dead_letter_operator(node: DeadLetterMessages, parts: OperatorParts) -> Operator:  # noqa: ARG001 - all take them
    """The operator of `dead_letters`."""
    return DeadLetterOperator(node)


class DeadLetterOperator(WithoutTime):
    """See Operator. It reads the rows that its computation reads, and runs after it."""

    def __init__(self, node: DeadLetterMessages) -> None:
        self.name = node.name
        self._of = node.of.name
        self._schema = node.schema

    def on_batch(self, batch: Batch, dead_letters: DeadLetters) -> Batch:
        """See Operator. A message that killed a worker goes to the sink only: it does not enter the stage."""
        failed = [each for each in dead_letters.take_new(self._of) if each.index not in batch.keys.without]
        failed.sort(key=attrgetter("index"))
        text = message_text(batch.keys.columns)
        if isinstance(dead_letters, FiringDeadLetters):
            text = dead_letters.text
        messages = [
            DeadLetter(each.computation, each.reason, text(each.index).decode("utf-8", "replace"))
            for each in failed
        ]
        columns = Columns.of_messages(self._schema, messages)
        sources = np.array([each.index for each in failed], np.int64)
        return Batch(columns, batch.keys, sources, batch.times, batch.watermarks)
