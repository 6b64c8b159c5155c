"""What the programs in SQL share: Python decodes messages and encodes results, Flink's own operators do the rest.

Windows in Python exist, too, but not the interval join; those in SQL are the faster ones.
"""

from collections.abc import Callable, Mapping

from pyflink.common import Row, Types
from pyflink.table import Schema, StreamTableEnvironment

from benchmarks.peers.events import COUNT, EVENT
from benchmarks.peers.flink.flow import BYTES, environment, events, results

_FIELDS = Types.ROW_NAMED(["id", "amount"], [Types.LONG(), Types.LONG()])
_SECOND_NS = 1_000_000_000


def run(name: str, views: Mapping[str, str], query: str, encode: Callable[[Row], bytes]) -> None:
    """Runs until the process is ended. `views`: the topic of each table (id, amount, happened) that the query names."""
    flow = environment()
    tables = StreamTableEnvironment.create(flow)
    tables.get_config().set_local_timezone("UTC")
    schema = (
        Schema.new_builder()
        .column_by_metadata("happened", "TIMESTAMP_LTZ(3)", "rowtime")
        .watermark("happened", "SOURCE_WATERMARK()")
        .build()
    )
    for view, topic in views.items():
        tables.create_temporary_view(view, events(flow, topic).map(_decode, _FIELDS), schema)
    found = tables.to_data_stream(tables.sql_query(query))
    found.map(encode, BYTES).sink_to(results())
    flow.execute(name)


def count(name: str, windows: str) -> None:
    """The same for counts and sums of windows, in the words of SQL."""
    query = f"""
        SELECT id, TIMESTAMPDIFF(SECOND, TIMESTAMP '1970-01-01 00:00:00', window_end), COUNT(*), SUM(amount)
        FROM TABLE({windows}) GROUP BY id, window_start, window_end
    """  # noqa: S608 - of our own constants
    run(name, {"events": "messages"}, query, _encode)


def _decode(message: bytes) -> Row:
    key, _, value = EVENT.unpack(bytes(message))
    return Row(key, value)


def _encode(window: Row) -> bytes:
    key, end_s, found, total = window
    return COUNT.pack(key, end_s * _SECOND_NS, found, total)
