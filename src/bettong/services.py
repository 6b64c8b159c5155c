"""The services of an application, each described once.

The command line, the local suite, the metrics endpoints and the rendered pages read these entries; the charts, the
images, the Tiltfile and the packages below `services/` are tested against them (tests/unit/test_services.py,
tests/kubernetes/test_services.py). A new service needs an entry here, settings in `bettong.config`, metrics in
`bettong.metrics`, and its own package.

The node tuner is not one of them: it belongs to a node, has its own chart and does not use the library.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bettong.metric_series import Scope

# The same in every pod of the chart.
METRICS_PORT = 7300

# Not one of SERVICES: the console only reads; no message passes it, it writes no record, and nothing depends on it.
CONSOLE = "console"
CONSOLE_PORT = 7400


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceEntry:
    """One service. `bettong NAME` runs it, from the package `bettong_NAME` in the image `NAME`.

    `grpc_port`: its default gRPC port, which the setting `NAME_listen` overrides; None for a service without gRPC.
    `health_port`: where the chart has it serve gRPC's health service without TLS, when gRPC has TLS. `settings`: the
    name of its class in `bettong.config.NAME`. `scopes`: of the metrics that its endpoint serves. `components`: those
    of the chart whose pods have its image, in the order in which they are replaced. `death`: what the service's death
    means to users. `memory_mb_max`: the most memory of one process (RSS, MiB) under any faults of the others; fault
    tests check it.
    """

    name: str
    summary: str
    settings: str
    scopes: tuple[Scope, ...]
    components: tuple[str, ...]
    death: str
    memory_mb_max: float
    grpc_port: int | None = None
    health_port: int | None = None

    @property
    def command(self) -> tuple[str, ...]:
        """The command that runs it, in a container and elsewhere."""
        return ("bettong", self.name)

    @property
    def listen_setting(self) -> str:
        """The setting of its gRPC address."""
        return f"{self.name}_listen"


SENDER = ServiceEntry(
    name="sender",
    summary="Take messages in over gRPC and append them to the log.",
    settings="SenderSettings",
    scopes=(Scope.SENDER,),
    components=("sender", "topic-sender"),
    death="clients connect again and resend, nothing is lost",
    memory_mb_max=768,  # its buffer is 256 MiB
    grpc_port=7100,
    health_port=7101,
)
PROCESSOR = ServiceEntry(
    name="processor",
    summary="Run the stages of an application on Spark.",
    settings="ProcessorSettings",
    scopes=(Scope.PROCESSOR, Scope.PARTITION, Scope.COMPUTATION),
    components=("master", "worker", "driver"),
    death="it goes on from its snapshots, no result is lost or repeated",
    memory_mb_max=512,
)
RECEIVER = ServiceEntry(
    name="receiver",
    summary="Deliver results from the log to sinks and subscribers.",
    settings="ReceiverSettings",
    scopes=(Scope.RECEIVER,),
    components=("receiver",),
    death="it goes on from its positions, no result is lost or repeated",
    memory_mb_max=768,
    grpc_port=7200,
    health_port=7201,
)

# By name, in the order in which messages pass them.
SERVICES: Mapping[str, ServiceEntry] = {each.name: each for each in (SENDER, PROCESSOR, RECEIVER)}
