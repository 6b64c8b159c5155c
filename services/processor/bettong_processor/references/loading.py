"""Calls `load()` of a reference table, and encodes the result as the bytes of a version."""

import threading
from collections.abc import Callable

from pyspark.sql.classic.dataframe import DataFrame

from bettong.application.reference_source import ReferenceSource
from bettong.errors import ReferenceLoadError, SchemaError
from bettong.user_errors import ANY_ERROR, cause_in_a_line
from bettong.worker.references.loaded import loaded_table
from bettong_processor.references.spark_files import paths_without_files


class Loads:
    """Allows one load of a join at a time, over all runs of a process. Thread-safe.

    A load that hangs cannot be ended, and each run starts one: they would pile up.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loading: set[str] = set()

    def run_alone(self, join: str, load: Callable[[], bytes]) -> bytes:
        """Calls `load`. Raises ReferenceLoadError while an earlier load of the join has not ended."""
        with self._lock:
            if join in self._loading:
                raise ReferenceLoadError(
                    f"reference table {join!r}: an earlier load() has not ended; if it never does, mend it, and start"
                    " this processor again"
                )
            self._loading.add(join)
        try:
            return load()
        finally:
            with self._lock:
                self._loading.remove(join)


def loaded_bytes(join: str, source: ReferenceSource, spark: Callable[[], object]) -> bytes:
    """Calls the user's function, and collects the result if it is a Spark DataFrame; blocks for as long as that takes.

    `spark` returns the session. Raises ReferenceLoadError.
    """
    name = f"reference table {join!r}"
    try:
        loaded = source.load(spark()) if source.takes_spark else source.load()
    except ANY_ERROR as error:
        raise ReferenceLoadError(f"{name}: load() failed: {cause_in_a_line(error)}") from None
    if isinstance(loaded, DataFrame) and (empty := paths_without_files(loaded)):
        raise ReferenceLoadError(
            f"{name}: what load() returned cannot be read: Spark found no file in {', '.join(empty)}, which may have"
            " been deleted meanwhile"
        )
    try:
        return loaded_table(source, loaded).encode()
    except SchemaError as error:
        raise ReferenceLoadError(f"{name}: {error}") from None
