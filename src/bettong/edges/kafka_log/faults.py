"""Our errors for failures of Kafka, with the same texts for both client libraries."""

from bettong.config.endpoints import servers
from bettong.errors import LogError, LogUnavailableError


def bootstrap_servers(bootstrap: str) -> str:
    """Bootstrap servers without spaces. Raises LogError unless it is host:port[,host:port]."""
    try:
        return servers(bootstrap)
    except ValueError as error:
        raise LogError(f"Kafka's bootstrap servers {bootstrap!r}: {error}") from None


def log_error(
    doing: str, bootstrap: str, reason: str, *, is_missing: bool, is_too_large: bool, is_transient: bool
) -> LogError:
    """The error to raise. `doing` names the operation and its topic; `reason` is Kafka's own text."""
    if is_missing:
        return LogError(
            f"{doing}: the topic or partition does not exist at {bootstrap}; create the topics first"
        )
    if is_too_large:
        return LogError(f"{doing}: larger than the topic takes; raise its max.message.bytes ({reason})")
    if is_transient:
        return LogUnavailableError(
            f"{doing}: no answer from Kafka at {bootstrap}; is it running and reachable? ({reason})"
        )
    return LogError(f"{doing}: Kafka at {bootstrap} refused: {reason}")
