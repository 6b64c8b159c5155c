"""A collector of OpenTelemetry traces: its service as the official protocol describes it, in this process.

It keeps what it gets. `refuse` has it answer with a status instead, as one does that is overloaded.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.servers.grpc_service import serving


@dataclass(frozen=True)
class CollectedSpan:
    """A span as it came, and the resource that it is of."""

    resource: dict[str, Any]
    span: Span
    attributes: dict[str, Any] = field(default_factory=dict)


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """The service. `spans`: in the order in which they came."""

    def __init__(self) -> None:
        self.spans: list[CollectedSpan] = []
        self.refuse: grpc.StatusCode | None = None
        self.refused = 0
        self._changed = threading.Condition()

    def Export(  # noqa: N802 - the name in the proto
        self, request: ExportTraceServiceRequest, context: grpc.ServicerContext
    ) -> ExportTraceServiceResponse:
        """See the proto."""
        with self._changed:
            if self.refuse is not None:
                self.refused += 1
                self._changed.notify_all()
                context.abort(self.refuse, "no room")
            for group in request.resource_spans:
                resource = values(group.resource.attributes)
                for scope in group.scope_spans:
                    self.spans += [
                        CollectedSpan(resource, each, values(each.attributes)) for each in scope.spans
                    ]
            self._changed.notify_all()
        return ExportTraceServiceResponse()

    def wait(self, condition: Callable[[], bool], timeout_s: float = 30.0) -> bool:
        """Whether it holds within that time, asked whenever something has come."""
        with self._changed:
            return self._changed.wait_for(condition, timeout_s)


def values(attributes: Any) -> dict[str, Any]:
    """Of the wire, as Python has them."""
    return {each.key: _value(each.value) for each in attributes}


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    return getattr(value, kind) if kind is not None else None


@contextmanager
def collecting(port: int = 0) -> Iterator[tuple[Collector, str]]:
    """A collector that serves, and its endpoint."""
    collector = Collector()
    add = partial(trace_service_pb2_grpc.add_TraceServiceServicer_to_server, collector)
    with serving(add, port=port) as address:
        yield collector, f"http://{address}"
