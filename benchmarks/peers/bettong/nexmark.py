"""The queries of examples/nexmark as they are, but from topics to a topic; each is an application of this file."""

from dataclasses import replace
from typing import Any

import bettong
import model
from benchmarks.peers.bettong.topics import CONNECTION, RESULTS
from benchmarks.peers.nexmark import SITE
from benchmarks.peers.nexmark.queries import QUERIES
from bettong.edges.application_file import load_anew


def from_topics_to_topic(query: str) -> bettong.Application:
    """The application of a query."""
    model.TOPICS_OF = CONNECTION
    try:
        # Not `load`, which keeps what it has given: others want the query as it is.
        app = load_anew(str(SITE / f"{query}.py"))
    finally:
        model.TOPICS_OF = None
    for sink in app.sinks:
        app.nodes[sink.name] = replace(sink, to=RESULTS)
    return app


applications: dict[str, Any] = {query: from_topics_to_topic(query) for query in QUERIES}
globals().update(applications)
