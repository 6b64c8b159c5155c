"""A sink that the user implements as a `bettong.TwoPhaseSink`."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from bettong.application.external.two_phase import TwoPhase, TwoPhaseSink
from bettong.errors import BettongError
from bettong.user_errors import ANY_ERROR
from bettong_receiver.delivery.connector import ConnectorUnavailableError, Refused, SinkBatch, SinkConnector
from bettong_receiver.delivery.route import Route
from bettong_receiver.errors import SinkError
from bettong_receiver.progress import SinkPartition
from bettong_receiver.sink_context import SinkContext

_Found = TypeVar("_Found")


def route(context: SinkContext, to: TwoPhase) -> Route[bytes]:
    """See `bettong_receiver.connectors`."""
    options = context.options_if_any(to)
    return context.route(
        context.messages, lambda: TwoPhaseConnector(context.name, lambda: to.open_sink(options))
    )


class TwoPhaseConnector(SinkConnector[bytes]):
    """See SinkConnector. A delivery is atomic per partition, not across partitions.

    Errors of the sink are mapped: OSError (no connection, a time-out) to unavailable, any other to SinkError.
    """

    def __init__(self, sink: str, open_sink: Callable[[], TwoPhaseSink]) -> None:
        self._name = f"sink {sink}"
        self._open_sink = open_sink
        self._sink: TwoPhaseSink | None = None

    def open(self, beginnings: Mapping[SinkPartition, int]) -> dict[SinkPartition, bytes | None]:
        """See SinkConnector."""
        sink = self._sink = self._mapping_errors("opening", self._open_sink)
        found = {}
        for key in beginnings:
            partition = key.partition
            doing = f"recover({partition})"
            position = self._mapping_errors(doing, lambda partition=partition: sink.recover(partition))  # type: ignore[misc]
            if position is not None and not isinstance(position, bytes):
                raise SinkError(
                    f"{self._name}: {doing} returned {type(position).__name__}, expected bytes or None"
                )
            found[key] = position
        return found

    def deliver(self, batches: Sequence[SinkBatch[bytes]]) -> Refused:
        """See SinkConnector."""
        sink = self._sink
        if sink is None:
            raise AssertionError("a connector is opened first")

        def prepare(batch: SinkBatch[bytes]) -> None:
            partition = batch.partition
            sink.begin(partition)
            if messages := batch.messages:
                sink.write(partition, messages)
            sink.prepare(partition, batch.position())

        for batch in batches:
            self._mapping_errors(f"preparing partition {batch.partition}", lambda batch=batch: prepare(batch))  # type: ignore[misc]
        for batch in batches:
            self._mapping_errors(
                f"committing partition {batch.partition}",
                lambda batch=batch: sink.commit(batch.partition, batch.position()),  # type: ignore[misc]
            )
        return {}

    def close(self) -> None:
        """See SinkConnector."""
        if self._sink is not None:
            try:
                self._sink.close()
            except ANY_ERROR:  # user code; the stored positions tell what it committed
                return

    def _mapping_errors(self, doing: str, call: Callable[[], _Found]) -> _Found:
        try:
            return call()
        except OSError as error:
            raise ConnectorUnavailableError(f"{self._name}: {doing}: {error}") from error
        except BettongError:
            raise
        except ANY_ERROR as error:
            raise SinkError(f"{self._name}: {doing}: {type(error).__name__}: {error}") from error
