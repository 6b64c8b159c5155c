"""A reference table that Spark reads from files: one that is deleted meanwhile never gives a table without its rows."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from bettong.application.plan import plan
from bettong.errors import ReferenceLoadError
from bettong.worker.references.table import ReferenceTable
from bettong_processor.references.loading import loaded_bytes
from tests.integration.spark_sessions import spark_session
from tests.samples.reference_join import Price, app_of

pytestmark = pytest.mark.slow

TEXT = "sku,cents\na,1\n"
SCHEMA = "sku string, cents bigint"
LOADS = 40


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with spark_session(tmp_path_factory.mktemp("spark"), {}) as session:
        session.sparkContext.setLogLevel("OFF")  # stack traces of reads that fail, which is what is tested
        yield session


def loaded(spark: SparkSession, load: Callable[[SparkSession], DataFrame]) -> list[Price]:
    """The rows of the version that a load makes. Raises ReferenceLoadError."""
    (stage,) = plan(app_of(load=load)).stages
    source = stage.references["priced"]
    found = ReferenceTable.decode(source, loaded_bytes("priced", source, lambda: spark))
    return [each for each in found.columns.messages() if isinstance(each, Price)]


def refused(spark: SparkSession, load: Callable[[SparkSession], DataFrame]) -> str:
    """Why a load fails, after what each such text says first."""
    with pytest.raises(ReferenceLoadError) as caught:
        loaded(spark, load)
    text = str(caught.value)
    assert "\n" not in text
    first = "reference table 'priced': what load() returned cannot be read: "
    assert text.startswith(first)
    return text.removeprefix(first)


def csv(spark: SparkSession, *paths: Path) -> DataFrame:
    return spark.read.csv(list(map(str, paths)), header=True, schema=SCHEMA)


def test_a_file_that_goes_before_spark_reads_it_is_said_in_a_line(
    spark: SparkSession, tmp_path: Path
) -> None:
    file = tmp_path / "prices.csv"
    file.write_text(TEXT)

    def prices(session: SparkSession) -> DataFrame:
        table = csv(session, file)
        file.unlink()
        return table

    text = refused(spark, prices)
    assert text.startswith("java.io.FileNotFound")
    assert str(file) in text


def test_a_file_that_comes_and_goes_gives_all_its_rows_or_no_table(
    spark: SparkSession, tmp_path: Path
) -> None:
    file, away = tmp_path / "prices.csv", tmp_path / "prices.away"
    file.write_text(TEXT)
    stopping = threading.Event()

    def come_and_go() -> None:
        while not stopping.wait(0.002):
            file.rename(away)
            stopping.wait(0.002)
            away.rename(file)

    flipping = threading.Thread(target=come_and_go)
    flipping.start()
    found: Counter[str] = Counter()
    try:
        for _ in range(LOADS):
            try:
                found[str(loaded(spark, lambda session: csv(session, file)))] += 1
            except ReferenceLoadError as error:
                found["refused" if str(file) in str(error) else str(error)] += 1
    finally:
        stopping.set()
        flipping.join()
    assert found.keys() <= {"refused", str([Price("a", 1)])}
    assert found["refused"] > 0


def test_a_folder_without_a_file_is_no_table(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "prices").mkdir()
    text = refused(spark, lambda session: csv(session, tmp_path / "prices"))
    assert text == f"Spark found no file in file:{tmp_path}/prices, which may have been deleted meanwhile"


def test_each_of_several_paths_has_a_file(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "prices 1.csv").write_text(TEXT)
    (tmp_path / "b").mkdir()
    (tmp_path / "c.csv").write_text("sku,cents\nc,3\n")
    folder, other, file = tmp_path / "a", tmp_path / "b", tmp_path / "c.csv"
    both = [Price("a", 1), Price("c", 3)]
    assert sorted(loaded(spark, lambda session: csv(session, folder, file)), key=str) == both
    assert f"{tmp_path}/b," in refused(spark, lambda session: csv(session, folder, other, file))
    joined = "select p.* from prices p where sku in (select sku from known)"

    def known(session: SparkSession) -> DataFrame:
        csv(session, folder).createOrReplaceTempView("prices")
        csv(session, other).createOrReplaceTempView("known")
        return session.sql(joined)

    assert f"{tmp_path}/b," in refused(spark, known)


def test_an_empty_table_that_is_whole_is_one(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "prices.parquet")
    spark.createDataFrame([], SCHEMA).write.parquet(path)
    assert loaded(spark, lambda session: session.read.parquet(path)) == []
    assert loaded(spark, lambda session: session.createDataFrame([], SCHEMA)) == []
