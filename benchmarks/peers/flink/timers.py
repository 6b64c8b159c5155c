"""Timers by PyFlink."""

from collections.abc import Iterator

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

from benchmarks.peers.events import EVENT, MS_NS, OVERDUE, on_step
from benchmarks.peers.flink.flow import BYTES, environment, events, results


class Wait(KeyedProcessFunction):
    """Keeps when a key's order is due."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """See KeyedProcessFunction."""
        self._due_ns = runtime_context.get_state(ValueStateDescriptor("due", Types.LONG()))

    def process_element(self, value: bytes, ctx: KeyedProcessFunction.Context) -> Iterator[bytes]:
        """One message of a key."""
        key, at_ns, kind = EVENT.unpack(bytes(value))
        before_ns = self._due_ns.value()
        due_ns, overdue_ns = on_step(at_ns, kind, before_ns)
        if before_ns is not None:
            ctx.timer_service().delete_event_time_timer(before_ns // MS_NS)
        if due_ns is not None:
            self._due_ns.update(due_ns)
            ctx.timer_service().register_event_time_timer(due_ns // MS_NS)
        elif before_ns is not None:
            self._due_ns.clear()
        if overdue_ns is not None:
            yield OVERDUE.pack(key, overdue_ns)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[bytes]:
        """Nobody has approved it."""
        self._due_ns.clear()
        yield OVERDUE.pack(ctx.get_current_key(), timestamp * MS_NS)


def key_of(message: bytes) -> int:
    """The key of a message."""
    return EVENT.unpack(bytes(message))[0]


def main() -> None:
    """Runs until the process is ended."""
    flow = environment()
    events(flow).key_by(key_of, Types.LONG()).process(Wait(), BYTES).sink_to(results())
    flow.execute("timers")
