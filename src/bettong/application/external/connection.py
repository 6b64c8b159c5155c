"""The name of an external system's connection."""

from bettong.errors import ApplicationError


def check_connection(owner: str, connection: object) -> None:
    """Raises ApplicationError for what can be no entry of the file BETTONG_CONNECTIONS; None stands for none."""
    if connection is not None and (not isinstance(connection, str) or not connection):
        raise ApplicationError(
            f"{owner}: connection={connection!r}: expected the name of an entry of the file BETTONG_CONNECTIONS, or"
            " nothing for the entry of its own name"
        )
