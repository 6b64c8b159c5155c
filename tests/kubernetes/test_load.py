"""Messages go in and results come out while a release is scaled and restarted: nothing is lost and nothing doubled.

On a real control plane, whose one node runs the pods' own commands as processes, with a real Kafka and a real Redis.
"""

import json
import threading
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bettong.client import Sender, Subscriber
from bettong.config.processor import Schedule
from bettong.errors import ClientError
from bettong.local.addresses import LOOPBACK
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from tests.kubernetes.chart import DEV, FOLDER, RELEASE
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.kubelet import Kubelet
from tests.kubernetes.spaces import Space
from tests.waiting import eventually

pytestmark = [pytest.mark.long, pytest.mark.cluster]

ACCOUNTS = 20
FRAME_EVERY_S = 0.05
STEP_S_MAX = 420.0  # a machine of two cores runs all of a cluster
CLASS = "here"


@dataclass
class Payment:
    """As the application of values-dev.yaml has it."""

    account: str
    amount: float


class Load:
    """Pays one unit into each account in turn, on and on, and collects the totals that come out."""

    def __init__(self, sender: str, receiver: str, sink: str) -> None:
        self._stopped = threading.Event()
        self._sender = Sender(sender, "payments", reconnect_s=120.0, credit_wait_s=120.0)
        self._results = Subscriber(receiver, sink, reconnect_s=120.0)
        self.rounds = 0
        self.totals: dict[str, list[float]] = defaultdict(list)
        self.faults: list[ClientError] = []
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._feed, self._collect)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        self._stopped.set()
        self._results.close()
        for thread in self._threads:
            thread.join(150)

    def finish(self) -> None:
        """No more goes in, and all that went in has its receipt."""
        self._stopped.set()
        self._threads[0].join(150)

    @property
    def came(self) -> int:
        return sum(map(len, list(self.totals.values())))

    def _feed(self) -> None:
        payments = [Payment(f"account-{number}", 1.0) for number in range(ACCOUNTS)]
        try:
            with self._sender as sender:
                while not self._stopped.wait(FRAME_EVERY_S):
                    sender.send_messages(payments)
                    self.rounds += 1
                sender.flush(120.0)
        except ClientError as error:
            self.faults.append(error)

    def _collect(self) -> None:
        try:
            for result in self._results:
                for message in result.messages:
                    found = json.loads(message)
                    self.totals[found["account"]].append(found["total"])
        except ClientError as error:
            self.faults.append(error)


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[ControlPlane]:
    with ControlPlane(tmp_path / "cluster", played=False) as found:
        yield found


def claims(plane: ControlPlane, folder: Path, count: int) -> None:
    """Volumes that claims of the class find."""
    for number in range(count):
        spec = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": CLASS,
            "hostPath": {"path": str(folder / f"volume-{number}")},
        }
        volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"volume-{number}"}}
        plane.kubectl("create", "-f", "-", given=json.dumps({**volume, "spec": spec}))


def application(name: str) -> str:
    """That of values-dev.yaml, under a name that no other test has."""
    source = DEV.read_text().partition("source: |\n")[2].partition("\n\nkafka:")[0]
    text = "\n".join(line.removeprefix("    ") for line in source.splitlines())
    return text.replace('Application("totals")', f'Application("{name}")') + "\n"


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("schedule", Schedule)
def test_nothing_is_lost_or_doubled_while_a_release_is_scaled_and_restarted(
    schedule: Schedule,
    plane: ControlPlane,
    tmp_path: Path,
    kafka: KafkaBroker,
    redis_server: RedisServer,
    unique_name: Callable[..., str],
) -> None:
    space = Space(plane, "load", tmp_path)
    claims(plane, tmp_path, 2)
    kept = {"enabled": True, "storageClassName": CLASS}
    values = {
        "application": {"source": application(unique_name("load"))},
        "kafka": {"bootstrapServers": kafka.bootstrap, "bundled": {"enabled": False}},
        "redis": {"url": redis_server.url, "bundled": {"enabled": False}},
        "sender": {"initialReplicas": 2},
        "worker": {"initialReplicas": 2, "slots": 1, "sharedMemoryMiB": 64},
        "master": {"persistence": kept},
        "driver": {"checkpoint": {"persistence": kept}},
        "settings": {"schedule": schedule.value},
        "test": {"timeoutSeconds": 390},
    }
    environment = {"KUBERNETES_SERVICE_HOST": LOOPBACK, "KUBERNETES_SERVICE_PORT": str(plane.port)}
    with ExitStack() as stack:
        kubelet = stack.enter_context(
            Kubelet(plane.config_of("admin"), tmp_path / "pods", space.name, environment)
        )
        space.helm(4, "install", RELEASE, str(FOLDER), values=values)
        eventually(
            lambda: len(space.running("worker")) == 2, seconds=STEP_S_MAX, what="the job of first counts"
        )
        ready(space, "statefulset", "worker")
        space.helm(4, "test", RELEASE, "--timeout", "400s")
        names = kubelet.services.addresses
        load = Load(
            f"{names[f'{RELEASE}-bettong-sender']}:7100",
            f"{names[f'{RELEASE}-bettong-receiver']}:7200",
            "totals",
        )
        stack.callback(load.close)
        load.start()
        flows(load)
        scale_and_restart(space, load, Master(names[f"{RELEASE}-bettong-master"]))
        load.finish()
        wanted = [float(number + 1) for number in range(load.rounds)]
        eventually(lambda: load.came >= ACCOUNTS * load.rounds or load.faults, seconds=STEP_S_MAX)
        assert load.faults == []
        space.kubectl("delete", "pod", f"{RELEASE}-bettong-test")  # of `helm test`, which leaves it
        space.helm(4, "uninstall", RELEASE)
        eventually(lambda: space.pods() == [], seconds=STEP_S_MAX, what="all pods end")
        # By now a result that came twice has come.
        for number in range(ACCOUNTS):
            assert load.totals[f"account-{number}"] == wanted
        assert kubelet.faults == []


class Master:
    """Spark's master, as its page tells."""

    def __init__(self, address: str) -> None:
        self._url = f"http://{address}:8080/json/"

    def lets_go(self, count: int) -> bool:
        """Whether so many workers have said that they leave, and are still there."""
        return [worker["state"] for worker in self._page()["workers"]].count("DECOMMISSIONED") == count

    def works(self, count: int) -> bool:
        """Whether so many workers are there, each with an executor."""
        alive = [worker for worker in self._page()["workers"] if worker["state"] == "ALIVE"]
        return len(alive) == count and all(worker["coresused"] for worker in alive)

    def _page(self) -> Any:
        with urllib.request.urlopen(self._url, timeout=10) as page:  # noqa: S310 - ours
            return json.load(page)


def scale_and_restart(space: Space, load: Load, master: Master) -> None:
    """One change after the other, each followed by new results."""
    for count in (3, 1, 2):
        leaving = space.wanted() - count
        space.scale(count)
        if leaving > 0:
            eventually(partial(master.lets_go, leaving), what="workers take their leave")
        ready(space, "statefulset", "worker")
        eventually(partial(master.works, count), seconds=STEP_S_MAX, what="each worker works")
        flows(load)
    for kind, name in (
        ("deployment", "sender"),
        ("statefulset", "worker"),
        ("deployment", "receiver"),
        ("statefulset", "master"),
        ("statefulset", "driver"),
    ):
        space.kubectl("rollout", "restart", f"{kind}/{RELEASE}-bettong-{name}")
        ready(space, kind, name)
        flows(load)


def flows(load: Load) -> None:
    """New results come, of messages that went in just now."""
    wanted = (load.rounds + 20) * ACCOUNTS
    eventually(lambda: load.came >= wanted or load.faults, seconds=STEP_S_MAX, what="results come")
    assert load.faults == []


def ready(space: Space, kind: str, name: str) -> None:
    """All pods of a workload are new and ready."""
    workload = f"{kind}/{RELEASE}-bettong-{name}"
    space.kubectl("rollout", "status", workload, f"--timeout={STEP_S_MAX:.0f}s")
