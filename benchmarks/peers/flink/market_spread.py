"""Market Spread by PyFlink."""

from collections.abc import Iterator

from pyflink.common import Types, WatermarkStrategy
from pyflink.datastream import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

from benchmarks.peers.flink.flow import BYTES, environment, messages, results
from benchmarks.peers.market import NEW, step, symbol_of

MARKET = Types.TUPLE([Types.DOUBLE(), Types.DOUBLE(), Types.BOOLEAN()])


class Check(KeyedProcessFunction):
    """Keeps a symbol's market as a value."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """See KeyedProcessFunction."""
        self._market = runtime_context.get_state(ValueStateDescriptor("market", MARKET))

    def process_element(self, value: bytes, ctx: KeyedProcessFunction.Context) -> Iterator[bytes]:  # noqa: ARG002
        """One message of a symbol. State is written only where it has changed."""
        before = self._market.value() or NEW
        market, result = step(bytes(value), before)
        if market is not before:
            self._market.update(market)
        if result is not None:
            yield result


def main() -> None:
    """Runs until the process is ended."""
    flow = environment()
    quotes_and_orders = messages(flow, WatermarkStrategy.no_watermarks())
    keyed = quotes_and_orders.key_by(lambda message: symbol_of(bytes(message)).decode(), Types.STRING())
    keyed.process(Check(), BYTES).sink_to(results())
    flow.execute("market-spread")
