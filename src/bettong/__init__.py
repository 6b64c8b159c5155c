"""Bettong: stateful stream processing for Python people, on Spark, Kafka, Redis and Kubernetes.

What an application is written with; see `examples/` for applications to copy.
"""

from bettong.application.application import Application
from bettong.application.codecs import Pickle
from bettong.application.decoders import each
from bettong.application.durations import seconds
from bettong.application.execution_mode import Places, compiled, vectorized
from bettong.application.external.kafka_topic import KafkaTopic
from bettong.application.external.postgres import Postgres
from bettong.application.external.tcp import AtLeastOnceTcp
from bettong.application.external.two_phase import TwoPhase, TwoPhaseSink
from bettong.application.external.webhook import AtLeastOnceWebhook
from bettong.application.streams import Stream
from bettong.application.timers import NEVER, Fired, LogTimer, Timer
from bettong.errors import ApplicationError, BettongError
from bettong.schema.fields import Width, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64
from bettong.schema.layouts import packed, tagged

__all__ = [
    "NEVER",
    "Application",
    "ApplicationError",
    "AtLeastOnceTcp",
    "AtLeastOnceWebhook",
    "BettongError",
    "Fired",
    "KafkaTopic",
    "LogTimer",
    "Pickle",
    "Places",
    "Postgres",
    "Stream",
    "Timer",
    "TwoPhase",
    "TwoPhaseSink",
    "Width",
    "compiled",
    "each",
    "f32",
    "f64",
    "i8",
    "i16",
    "i32",
    "i64",
    "packed",
    "seconds",
    "tagged",
    "u8",
    "u16",
    "u32",
    "u64",
    "vectorized",
]
