"""Bettong: stateful stream processing for Python people, on Spark, Kafka, Redis and Kubernetes.

What an application is written with; see `examples/` for applications to copy.
"""

from bettong.application.application import Application
from bettong.application.codecs import Pickle
from bettong.application.decoders import each
from bettong.application.durations import seconds
from bettong.application.execution_mode import RowIndexes, compiled, vectorized
from bettong.application.external.kafka_topic import KafkaTopic
from bettong.application.external.partitioned_files import PartitionedFiles
from bettong.application.external.postgres import Postgres
from bettong.application.external.tcp import AtLeastOnceTcp
from bettong.application.external.two_phase import TwoPhase, TwoPhaseSink
from bettong.application.external.webhook import AtLeastOnceWebhook
from bettong.application.nodes.dead_letter_messages import DeadLetter
from bettong.application.streams import Stream
from bettong.application.timers import NEVER, Fired, LogTimer, Timer
from bettong.application.windows.aggregated import aggregate
from bettong.application.windows.aggregates import Count, Distinct, First, Last, Max, Mean, Min, Sum
from bettong.application.windows.aggregation import Aggregation
from bettong.application.windows.approx_distinct import ApproxDistinct
from bettong.application.windows.kinds import counts, ephemeral, sessions, sliding, tumbling
from bettong.application.windows.quantile import Quantile
from bettong.application.windows.ranked import Top
from bettong.application.windows.window import Window
from bettong.errors import ApplicationError, BettongError
from bettong.schema.fields import AtMost, Width, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64
from bettong.schema.forms.decimals import Precision
from bettong.schema.forms.json_documents import Json
from bettong.schema.layouts import packed, tagged

__all__ = [
    "NEVER",
    "Aggregation",
    "Application",
    "ApplicationError",
    "ApproxDistinct",
    "AtLeastOnceTcp",
    "AtLeastOnceWebhook",
    "AtMost",
    "BettongError",
    "Count",
    "DeadLetter",
    "Distinct",
    "Fired",
    "First",
    "Json",
    "KafkaTopic",
    "Last",
    "LogTimer",
    "Max",
    "Mean",
    "Min",
    "PartitionedFiles",
    "Pickle",
    "Postgres",
    "Precision",
    "Quantile",
    "RowIndexes",
    "Stream",
    "Sum",
    "Timer",
    "Top",
    "TwoPhase",
    "TwoPhaseSink",
    "Width",
    "Window",
    "aggregate",
    "compiled",
    "counts",
    "each",
    "ephemeral",
    "f32",
    "f64",
    "i8",
    "i16",
    "i32",
    "i64",
    "packed",
    "seconds",
    "sessions",
    "sliding",
    "tagged",
    "tumbling",
    "u8",
    "u16",
    "u32",
    "u64",
    "vectorized",
]
