"""The chart's own commands, variables and files, run as processes: a cluster forms, and the chart's own test passes.

With a real broker and a real Redis in the place of the bundled ones, whose images are not ours.
"""

import os
import signal
import socket
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from bettong.local.broker import KafkaBroker
from bettong.local.probes import grpc_serves
from bettong.local.redis_server import RedisServer
from bettong.local.server import Server
from tests.kubernetes.chart import DEV, RELEASE, Chart
from tests.kubernetes.pods import Pods
from tests.waiting import eventually

_TRIP_S_MAX = 330.0


class Deployment:
    """One release with two workers."""

    def __init__(self, chart: Chart, folder: Path, kafka: KafkaBroker, redis: RedisServer, name: str) -> None:
        source = DEV.read_text().partition("source: |\n")[2].partition("\n\nkafka:")[0]
        lines = [line.removeprefix("    ") for line in source.splitlines()]
        application = "\n".join(lines).replace('"totals")\n', f'"{name}")\n', 1) + "\n"
        values = {
            "application": {"source": application},
            "worker": {"slots": 1, "sharedMemoryMiB": 64},
            "networkPolicies": {"enabled": False},
            "test": {"timeoutSeconds": 300},
        }
        names = {
            f"{RELEASE}-bettong-kafka:9092": kafka.bootstrap,
            f"{RELEASE}-bettong-redis:6379": f"127.0.0.1:{redis.port}",
        }
        self.pods = Pods(chart.render(values, dev=True), folder, names)
        serve = self.pods.serve
        self.master = serve(
            "StatefulSet/trial-bettong-master", named="trial-bettong-master", answers=master_has(0)
        )
        self.workers = [serve("StatefulSet/trial-bettong-worker", answers=listening(8081)) for _ in range(2)]
        self.driver = serve("StatefulSet/trial-bettong-driver", answers=listening(4040))
        self.sender = serve(
            "Deployment/trial-bettong-sender",
            named="trial-bettong-sender",
            answers=lambda address: grpc_serves(f"{address}:7100"),
        )
        self.receiver = serve(
            "Deployment/trial-bettong-receiver",
            named="trial-bettong-receiver",
            answers=lambda address: grpc_serves(f"{address}:7200"),
        )

    @property
    def servers(self) -> list[Server]:
        return [self.master, *self.workers, self.driver, self.sender, self.receiver]

    def trip(self) -> None:
        """`helm test`: a message goes in and its result comes out."""
        test = self.pods.run(f"Pod/{RELEASE}-bettong-test")
        ending = test.wait(_TRIP_S_MAX)
        assert ending is not None, test.obituary()
        assert ending.status == 0, test.obituary()

    def driver_passes(self, kind: str) -> bool:
        """Whether a probe of the driver says that all is well."""
        ending = self.pods.probe("StatefulSet/trial-bettong-driver", kind).wait(60)
        return ending is not None and ending.status == 0


def listening(port: int) -> Callable[[str], bool]:
    def answers(address: str) -> bool:
        try:
            with socket.create_connection((address, port), timeout=1):
                return True
        except OSError:
            return False

    return answers


def knows_workers(master: Server, count: int) -> bool:
    """Whether so many workers have said to a master that started again that they live, by its log."""
    return master.command.log.read_text().count("Worker has been re-registered") >= count


def master_has(workers: int) -> Callable[[str], bool]:
    """Whether the master answers as its probe asks, and knows so many workers that live."""

    def answers(address: str) -> bool:
        try:
            with urllib.request.urlopen(f"http://{address}:8080/json/", timeout=1) as answer:
                return int(answer.read().count(b'"state" : "ALIVE"')) == workers
        except OSError:
            return False

    return answers


@pytest.fixture
def deployment(
    chart: Chart,
    tmp_path: Path,
    kafka: KafkaBroker,
    redis_server: RedisServer,
    unique_name: Callable[..., str],
) -> Iterator[Deployment]:
    found = Deployment(chart, tmp_path, kafka, redis_server, unique_name("chart"))
    with ExitStack() as stack:
        for server in found.servers:
            stack.callback(server.kill)
            server.launch()
        yield found


@pytest.mark.long
@pytest.mark.timeout(900)
def test_messages_go_through_though_the_master_starts_again_and_a_worker_leaves(
    deployment: Deployment,
) -> None:
    deployment.trip()
    # Its first batch may be over before it has said that it runs; a kubelet asks again too.
    eventually(lambda: deployment.driver_passes("startupProbe"), seconds=60)
    assert deployment.driver_passes("livenessProbe")
    deployment.master.kill()
    deployment.master.start()
    eventually(
        lambda: knows_workers(deployment.master, 2), seconds=60, what="workers come back to the master"
    )
    leaving = deployment.workers[0].process
    assert leaving is not None
    os.kill(leaving.pid, signal.SIGPWR)  # what preStop does
    eventually(lambda: "Decommission worker" in leaving.command.log.read_text(), seconds=20)
    assert leaving.stop().status in {0, 143}
    deployment.trip()
    for server in (deployment.driver, deployment.sender, deployment.receiver):
        assert server.process is not None
        assert server.process.stop().status == 0, server.obituary()
