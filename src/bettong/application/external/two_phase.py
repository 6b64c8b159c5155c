"""Sinks that users implement: the contract of such a sink, and how an application names it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from bettong.application.callables import check_arguments, check_plain
from bettong.application.external.destination import Destination
from bettong.errors import ApplicationError
from bettong.schema.schema import Schema


class TwoPhaseSink(Protocol):
    """A sink of your own that gets each message exactly once. See docs/sinks.md, and the contract tests
    `bettong.testing.TwoPhaseSinkContract`, which check that your sink keeps this contract.

        recover(p) ─> begin(p) ─> write(p, ...)* ─> prepare(p, position) ─> commit(p, position) ─> begin(p) ...

    Every partition is a sequence of batches of its own; batches of several partitions may be open at a time. A
    position is a few hundred bytes that say how far the partition is delivered: store them unchanged. Calls are from
    one thread. A method may block for some seconds. `bettong status` shows whatever it raises; then the object is
    closed, and after a while a new one is opened, which recovers.
    """

    def recover(self, partition: int) -> bytes | None:
        """The first call for a partition: completes or undoes what another object left, at whatever point.

        A prepared batch is committed or rolled back, as you like; any other open batch is rolled back. Returns the
        position of the newest committed batch, None when there is none: the log is read again from there. From here on
        an older object that still lives (a receiver that was thought dead) must fail in `prepare` or `commit`.
        """

    def begin(self, partition: int) -> None:
        """Starts a batch."""

    def write(self, partition: int, messages: Sequence[bytes]) -> None:
        """Adds messages to the batch, in order: the encoder's bytes, else JSON objects. They stay invisible."""

    def prepare(self, partition: int, position: bytes) -> None:
        """Makes batch and position durable together, still invisible, so that only loss of the disk prevents commit."""

    def commit(self, partition: int, position: bytes) -> None:
        """Makes the batch visible atomically, and `position` the one that `recover` returns."""

    def close(self) -> None:
        """Releases all resources. Rolls open batches back; must not commit. Not called when the process is killed."""


@dataclass(frozen=True, slots=True)
class TwoPhase(Destination):
    """A sink of your own: `to=TwoPhase(open_ledger)`.

    The receiver calls `open_sink(options)` to get a `TwoPhaseSink`; `options` is the connection's entry in
    BETTONG_CONNECTIONS, empty when there is none.
    """

    kind: ClassVar[str] = "two_phase"

    open_sink: Callable[[Mapping[str, Any]], TwoPhaseSink]
    connection: str | None = None

    def check_sink(self, sink: str, schema: Schema | None, *, encoded: bool) -> None:
        """See Destination."""
        del schema, encoded
        if not callable(self.open_sink):
            raise ApplicationError(
                f"sink {sink!r}: TwoPhase({self.open_sink!r}): expected a function that opens the sink"
            )
        owner = f"sink {sink!r}: TwoPhase(open_sink)"
        check_plain(owner, self.open_sink)
        check_arguments(owner, self.open_sink, ({},), "one argument, the options of its connection")
