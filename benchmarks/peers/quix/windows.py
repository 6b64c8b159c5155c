"""What the programs of windows share: counts and sums of those that are over."""

from typing import Any

from quixstreams import Application
from quixstreams.dataframe.windows.aggregations import Count, Sum
from quixstreams.dataframe.windows.definitions import WindowDefinition

from benchmarks.peers.events import COUNT, MS_NS
from benchmarks.peers.quix.application import results


def count(app: Application, windows: WindowDefinition) -> None:
    """Into the topic of results. A key's windows are closed by its own messages, which is the default."""
    over = windows.agg(count=Count(), total=Sum()).final()
    over.apply(_pack, metadata=True).to_topic(results(app))


def _pack(window: dict[str, int], key: bytes, _timestamp: int, _headers: Any) -> bytes:
    return COUNT.pack(int(key), window["end"] * MS_NS, window["count"], window["total"])
