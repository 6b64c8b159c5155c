"""Spark's checkpoint, as a processor that was killed may have left it."""

from typing import Any

from pyspark.sql import SparkSession


def clear_unfinished(spark: SparkSession, checkpoint: str) -> bool:
    """Removes the offset log of a query that was killed while it wrote its first batch there; whether it had to.

    Spark writes a file under another name, then renames it. With nothing but such a file it neither goes on, for
    there is no batch, nor begins (`STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY`): it would fail at every start.
    """
    java: Any = spark.sparkContext._jvm  # noqa: SLF001 - the only way to the file systems that Spark knows
    offsets = java.org.apache.hadoop.fs.Path(checkpoint, "offsets")
    files = offsets.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())  # noqa: SLF001
    if not files.exists(offsets):
        return False
    names = [each.getPath().getName() for each in files.listStatus(offsets)]
    if not names or any(name.isdecimal() for name in names):
        return False
    files.delete(offsets, True)  # noqa: FBT003 - Java's
    return True
