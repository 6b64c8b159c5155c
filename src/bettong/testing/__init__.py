"""Tools for users to test their applications and sinks, without services, Spark, Kafka or Redis.

inputs             the inputs of a test, as data
running            an application in memory: `run`, `AppSession`
memory_*           its clients, its partitions, the records between them
outcome            the results of a run
checking           `check`: the same messages in other frames, partitions and speeds, with crashes and repetitions
variations         these variations
smallest           finds the smallest case that shows a fault, with hypothesis
pasted_test        writes a case as a test
strategies         `cases`: cases that hypothesis draws
logged             recorded logs, and files of them
recorded           `case_from`: a case from a log
two_phase          the contract for users' own sinks
"""

from bettong.errors import CaseError
from bettong.testing.checking import CheckError, check
from bettong.testing.inputs import (
    CRASH,
    END,
    IDLE,
    RESEND,
    RESTORE,
    SAVE,
    Reference,
    clock,
    end_stream,
    frame,
    watermark,
)
from bettong.testing.logged import LoggedRecord, read_log, write_log
from bettong.testing.memory_partition import ReplayError
from bettong.testing.memory_processor import AtEachRecord
from bettong.testing.outcome import DeadMessage, Outcome, PendingTimer, assert_alike
from bettong.testing.recorded import case_from
from bettong.testing.running import AppSession, run
from bettong.testing.strategies import cases
from bettong.testing.two_phase import TwoPhaseSinkContract

__all__ = [
    "CRASH",
    "END",
    "IDLE",
    "RESEND",
    "RESTORE",
    "SAVE",
    "AppSession",
    "AtEachRecord",
    "CaseError",
    "CheckError",
    "DeadMessage",
    "LoggedRecord",
    "Outcome",
    "PendingTimer",
    "Reference",
    "ReplayError",
    "TwoPhaseSinkContract",
    "assert_alike",
    "case_from",
    "cases",
    "check",
    "clock",
    "end_stream",
    "frame",
    "read_log",
    "run",
    "watermark",
    "write_log",
]
