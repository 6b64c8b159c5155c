"""The three accounts with the most, by Spark SQL, beside the application of the README as it runs.

    bettong up hello.py
    bettong send payments payments.jsonl
    python examples/query_states.py hello.py lake

Writes all results there were, and what each account holds now, as tables of Parquet into the folder `lake`, or with
`--format delta` of Delta Lake. Run it again and it writes both anew. Nothing that runs is disturbed. More:
docs/spark.md.
"""

import argparse
import os
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import bettong.spark

TOP = "SELECT account, total FROM accounts ORDER BY total DESC, account LIMIT 3"


def local_session() -> SparkSession:
    """Spark on this machine."""
    # Spark's tasks run Python of their own: that which has Bettong.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return SparkSession.builder.master("local[*]").appName("query states").getOrCreate()


def write(app: str, folder: Path, spark: SparkSession, form: str = "parquet") -> None:
    """Results and states as tables of a form that Spark knows; earlier ones are replaced."""
    totals = bettong.spark.batch(app, spark)["totals"]
    accounts = bettong.spark.state(app, spark, "add")
    totals.write.format(form).mode("overwrite").save(str(folder / "totals"))
    accounts.write.format(form).mode("overwrite").save(str(folder / "accounts"))


def top_accounts(folder: Path, spark: SparkSession, form: str = "parquet") -> DataFrame:
    """The accounts that hold most, as they were written."""
    spark.read.format(form).load(str(folder / "accounts")).createOrReplaceTempView("accounts")
    return spark.sql(TOP)


def main() -> None:
    """Command line."""
    options = argparse.ArgumentParser(description="Ask Spark SQL about the states of an application.")
    options.add_argument("app", help="The application's file, as `bettong up` was given it.")
    options.add_argument("folder", type=Path, help="Where the tables go.")
    options.add_argument("--format", default="parquet", help="Of tables; delta where Spark has Delta Lake.")
    chosen = options.parse_args()
    spark = local_session()
    write(chosen.app, chosen.folder, spark, chosen.format)
    top_accounts(chosen.folder, spark, chosen.format).show()
    spark.stop()


if __name__ == "__main__":
    main()
