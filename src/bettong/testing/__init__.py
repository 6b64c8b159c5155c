"""What users test their applications and their sinks with: no service runs, no Spark, Kafka or Redis is needed.

inputs             what happens in a test, as data
running            an application in memory: `run`, `AppSession`
memory_*           its clients, its partitions, what goes between them
outcome            what came of it
checking           `check`: the same messages in other frames, partitions and speeds, with crashes and repetitions
variations         which
smallest           the smallest case that shows a fault, found by hypothesis
pasted_test        a case as a test
strategies         `cases`: cases that hypothesis draws
logged             recorded logs, and files of them
recorded           `case_from`: a case out of a log
two_phase          the contract of sinks of one's own
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
