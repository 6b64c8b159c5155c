"""A session of Spark in this process."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from bettong.local.services import spark_folders


@contextmanager
def spark_session(scratch: Path, options: Mapping[str, str]) -> Iterator[SparkSession]:
    """Its files lie in `scratch`, and its Java ends with it. One at a time."""
    options = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.driver.memory": "512m",
        "spark.databricks.delta.snapshotPartitions": "1",
        # Java runs for seconds here: its second compiler would only take time.
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        **options,
    }
    with pytest.MonkeyPatch.context() as environment:
        for name, value in spark_folders(scratch).items():
            environment.setenv(name, value)
        environment.setenv("PYSPARK_PYTHON", sys.executable)
        environment.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        environment.setenv("BETTONG_STATE_DIR", str(scratch / "shared"))
        builder = SparkSession.builder.master("local[2]")
        for name, value in options.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        gateway = SparkContext._gateway
        try:
            yield session
        finally:
            session.stop()  # pyspark leaves its Java running
            assert gateway is not None
            gateway.shutdown()
            gateway.proc.stdin.close()
            gateway.proc.wait(30)
            SparkContext._gateway = SparkContext._jvm = None
