"""What Python reads from Spark's Scala objects, for which pyspark has no call."""

from collections.abc import Iterator
from typing import Any

from pyspark import SparkContext


def scala_context(context: SparkContext) -> Any:
    """Scala's `SparkContext`."""
    return context._jsc.sc()  # noqa: SLF001 - Python has no other way to ask


def elements(sequence: Any) -> Iterator[Any]:
    """Those of a `Seq`."""
    return map(sequence.apply, range(sequence.size()))
