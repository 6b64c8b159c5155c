"""The files that a Spark DataFrame reads, as Spark listed them when the DataFrame was made."""

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from pyspark.sql.classic.dataframe import DataFrame

from bettong_processor.scala import elements

_FILES = "HadoopFsRelation"
# Other indexes list what a table's log or catalogue names: there, a table without a file is empty.
_LISTED = "InMemoryFileIndex"


def paths_without_files(frame: DataFrame) -> list[str]:
    """Paths that `frame` reads and in which Spark found no file.

    Spark takes a path that is deleted between its check and its listing for an empty one, and raises nothing; a folder
    that another program is overwriting has no file for a while, either. An empty table that is whole has a file.
    """
    return sorted({path for index in _indexes(frame) for path in _paths_without_files(index)})


def _indexes(frame: DataFrame) -> Iterator[Any]:
    plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - Python has no other way to a plan
    for each in (plan, *elements(plan.subqueriesAll())):
        for leaf in elements(each.collectLeaves()):
            if _name(leaf) != "LogicalRelation" or _name(leaf.relation()) != _FILES:
                continue
            index = leaf.relation().location()
            if _name(index) == _LISTED:
                yield index


def _paths_without_files(index: Any) -> Iterator[str]:
    found: set[str] = set()
    for status in elements(index.allFiles()):
        file = PurePosixPath(status.getPath().toString())
        found.update(map(str, (file, *file.parents)))
    for path in elements(index.rootPaths()):
        if str(PurePosixPath(path.toString())) not in found:
            yield path.toString()


def _name(of_java: Any) -> str:
    return str(of_java.getClass().getSimpleName())
