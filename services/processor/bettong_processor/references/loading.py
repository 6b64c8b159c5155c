"""What `load()` of a reference table gives, as the bytes of a version."""

from collections.abc import Callable

from bettong.application.reference_source import ReferenceSource
from bettong.errors import ReferenceLoadError, SchemaError
from bettong.user_errors import ANY_ERROR, reason_of
from bettong.worker.references.loaded import loaded_table


def loaded_bytes(join: str, source: ReferenceSource, spark: Callable[[], object]) -> bytes:
    """Calls the user's function, and Spark where it gives a frame of Spark's; blocks for as long as they take.

    `spark` gives the session. Raises ReferenceLoadError.
    """
    name = f"reference table {join!r}"
    try:
        loaded = source.load(spark()) if source.takes_spark else source.load()
    except ANY_ERROR as error:
        # One line: Spark's own texts hold Java's stack.
        reason = reason_of(error).strip().partition("\n")[0]
        raise ReferenceLoadError(f"{name}: load() failed: {reason}") from None
    try:
        return loaded_table(source, loaded).encode()
    except SchemaError as error:
        raise ReferenceLoadError(f"{name}: {error}") from None
