"""The source of a reference table, as a computation that joins with it describes it."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from bettong.application.callables import check_plain
from bettong.application.durations import duration_ns
from bettong.errors import ApplicationError, SchemaError
from bettong.schema.fields import Field, Kind
from bettong.schema.schema import Schema

# Returns the table: an Arrow table, a pandas or a Spark DataFrame. It may take one argument, Spark's session.
Load = Callable[..., Any]

_KEYS = (Kind.INT, Kind.TEXT, Kind.BYTES)


# A table is loaded whole each time.
RELOAD_NS_MIN = 1_000_000_000


@dataclass(frozen=True, slots=True)
class ReferenceSource:
    """A table of rows of `schema`, each with a different value of `key`, one of its fields.

    `takes_spark`: whether `load` is called with Spark's session. `reload_every_ns`: how often it is called again;
    None: the first table stays.
    """

    load: Load
    takes_spark: bool
    schema: Schema
    key: str
    reload_every_ns: int | None

    @property
    def key_field(self) -> Field:
        """The field of `key`."""
        return self.schema.fields[self.schema.position(self.key)]

    def series(self, join: str) -> str:
        """The name of the series of this table's versions, as the table of a join.

        Where fields or key change the name changes, too: earlier versions would not fit, and are not read.
        """
        return f"{join}-{self.schema.fingerprint:016x}-{self.schema.position(self.key)}"


def reference_source(
    owner: str, load: Load, key: str, schema: Schema, reload_every: timedelta | None
) -> ReferenceSource:
    """Checks the arguments of `join_reference`, for rows of that schema. Raises ApplicationError."""
    check_plain(f"{owner}: load", load)
    try:
        field = schema.fields[schema.position(key)]
    except SchemaError as error:
        raise ApplicationError(f"{owner}: key={key!r}: {error}") from None
    if field.kind not in _KEYS:
        raise ApplicationError(
            f"{owner}: key={key!r} is {field.kind_name}; the key of a reference table is a whole number, text or bytes"
        )
    every_ns = None if reload_every is None else duration_ns(owner, "reload_every", reload_every)
    if every_ns is not None and every_ns < RELOAD_NS_MIN:
        raise ApplicationError(f"{owner}: reload_every={reload_every}: expected a second or more")
    return ReferenceSource(load, _takes_spark(owner, load), schema, key, every_ns)


def _takes_spark(owner: str, load: Load) -> bool:
    if not callable(load):
        raise ApplicationError(
            f"{owner}: load={load!r} is no function; give one that returns an Arrow table, or a pandas or Spark"
            " DataFrame"
        )
    try:
        signature = inspect.signature(load)
    except ValueError:  # of a built-in without a signature
        return False
    for arguments in ((), (None,)):
        try:
            signature.bind(*arguments)
        except TypeError:
            continue
        return bool(arguments)
    raise ApplicationError(f"{owner}: load must take no argument, or one, Spark's session: {signature}")
