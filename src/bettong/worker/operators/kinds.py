"""Makes the operator of each kind of computation."""

from collections.abc import Callable, Mapping
from typing import Any

from bettong.application.joins.joined import Joined, LateSide
from bettong.application.joins.referenced import Referenced
from bettong.application.nodes.branched import Branched
from bettong.application.nodes.computation import Computation
from bettong.application.nodes.dead_letter_messages import DeadLetterMessages
from bettong.application.nodes.stateful import Stateful
from bettong.application.nodes.stateless import Filtered, FlatMapped, Mapped
from bettong.application.windows.partials import Partials
from bettong.application.windows.windowed import LateMessages, Windowed
from bettong.worker.operators.branch import branch_operator
from bettong.worker.operators.dead_letter_messages import dead_letter_operator
from bettong.worker.operators.filter import filter_operator
from bettong.worker.operators.join import join_operator, late_side_operator
from bettong.worker.operators.local import local_operator
from bettong.worker.operators.map import map_operator
from bettong.worker.operators.operator import Operator, OperatorParts
from bettong.worker.operators.reference import reference_operator
from bettong.worker.operators.stateful import stateful_operator
from bettong.worker.operators.window import late_operator, window_operator

# A subclass that is not listed gets the operator of its base class.
_KINDS: Mapping[type[Computation], Callable[[Any, OperatorParts], Operator]] = {
    Mapped: map_operator,
    FlatMapped: map_operator,
    Filtered: filter_operator,
    Branched: branch_operator,
    Stateful: stateful_operator,
    Windowed: window_operator,
    LateMessages: late_operator,
    Partials: local_operator,
    Joined: join_operator,
    LateSide: late_side_operator,
    Referenced: reference_operator,
    DeadLetterMessages: dead_letter_operator,
}


def make_operator(node: Computation, parts: OperatorParts) -> Operator:
    """The operator of a computation in one partition."""
    return next(_KINDS[kind] for kind in type(node).__mro__ if kind in _KINDS)(node, parts)
